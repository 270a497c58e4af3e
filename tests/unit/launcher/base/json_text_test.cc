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
