#include "launcher/base/json_text.h"

#include <gtest/gtest.h>

namespace taskcell {
namespace {

TEST(JsonTextTest, CommasStandBetweenValuesOnly) {
  JsonText json;
  json.Open('{')
      .Key("a")
      .Number(-1)
      .Key("b")
      .Open('[')
      .String("x")
      .Bool(true)
      .Null()
      .Close(']')
      .Close('}');
  EXPECT_EQ(json.text(), R"({"a":-1,"b":["x",true,null]})");
}

// Of two bytes too: U+009B begins what terminals take for a command, as ESC [ does.
TEST(JsonTextTest, NoControlIsLeftAsItIs) {
  JsonText json;
  json.String(
      "\xc2\x80 \xc2\x9b"
      "31m \xc2\x9f \xc2\xa0");
  EXPECT_EQ(json.text(), "\"\\u0080 \\u009b31m \\u009f \xc2\xa0\"");
}

TEST(JsonTextTest, StringsAreEscapedAndAlwaysUtf8) {
  JsonText json;
  json.String(
      "q\"\\\n\x7f\xff"
      "e\xc3\xa9");
  EXPECT_EQ(json.text(),
            "\"q\\\"\\\\\\u000a\\u007f\xEF\xBF\xBD"
            "e\xc3\xa9\"");
}

}  // namespace
}  // namespace taskcell
