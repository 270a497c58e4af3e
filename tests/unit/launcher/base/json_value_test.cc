#include "launcher/base/json_value.h"

#include <gtest/gtest.h>

#include <string>

#include "launcher/base/text.h"

namespace taskcell {
namespace {

JsonEnd EndOf(std::string_view text) { return ReadJson(text).end; }

TEST(JsonValueTest, EveryKindIsRead) {
  JsonValue value =
      ParseJson(R"( {"s":"x","n":-1.5e+3,"t":true,"f":false,"z":null,"a":[1,[],{}],"o":{"k":2}} )")
          .value();
  EXPECT_EQ(value.String("s"), "x");
  EXPECT_EQ(value.Find("n")->text, "-1.5e+3");
  EXPECT_TRUE(value.True("t"));
  EXPECT_FALSE(value.True("f"));
  EXPECT_FALSE(value.True("s"));
  EXPECT_EQ(value.Find("z")->kind, JsonKind::kNull);
  EXPECT_EQ(value.Find("a")->items.size(), 3U);
  EXPECT_EQ(value.Find("o")->Unsigned("k"), 2U);
  EXPECT_EQ(value.Unsigned("n"), 0U);  // no whole number
  EXPECT_EQ(value.Find("missing"), nullptr);
  EXPECT_EQ(value.String("n"), "");
}

TEST(JsonValueTest, TheLastOfTwoEqualKeysCounts) {
  EXPECT_EQ(ParseJson(R"({"a":"1","a":"2"})")->String("a"), "2");
}

TEST(JsonValueTest, EscapesAndSurrogatePairsAreDecoded) {
  EXPECT_EQ(ParseJson(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u97d3\ud83d\ude00")")->text,
            "\"\\/\b\f\n\r\tA\u00e9\u97d3\U0001F600");
  EXPECT_EQ(ParseJson(R"("a\u0000b")")->text, std::string("a\0b", 3));
}

TEST(JsonValueTest, LoneSurrogatesAndBadBytesBecomeTheReplacementCharacter) {
  EXPECT_EQ(ParseJson(R"("half \ud83d x")")->text, "half \uFFFD x");
  EXPECT_EQ(ParseJson(R"("\ude00")")->text, "\uFFFD");
  EXPECT_EQ(ParseJson(R"("\ud83d\u0041")")->text, "\uFFFDA");
  EXPECT_EQ(ParseJson(R"("\ud83d\ud83d\ude00")")->text, "\uFFFD\U0001F600");
  EXPECT_EQ(ParseJson("\"a\xFF\xC0\xAF\xED\xA0\x80z\"")->text.substr(0, 4), "a\uFFFD");
  EXPECT_TRUE(IsUtf8(ParseJson("\"a\xFF\xC0\xAF\xED\xA0\x80z\"")->text));
}

TEST(JsonValueTest, EveryCutOfAValueIsIncompleteAndNeverInvalid) {
  std::string whole = R"({"a":[1.5e3,true,null,"x\u00e9\n"],"b":{"c":false}})";
  ASSERT_EQ(EndOf(whole), JsonEnd::kComplete);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(EndOf(whole.substr(0, i)), JsonEnd::kIncomplete) << i;
  }
}

TEST(JsonValueTest, WhatIsNotJsonIsInvalid) {
  for (const char* text : {"{ not json", "{a:1}", "{'a':1}", "[1,]", "{\"a\":1,}", "tru1", "01x{",
                           "+1", ".5", "1.x", "1ex", "\"\\x\"", "\"\\u00g0\"", "\"a\nb\"", "}",
                           "NaN", "[1 2]", "{\"a\" 1}", "{\"a\":1 \"b\":2}"}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  EXPECT_EQ(EndOf("{ not json"), JsonEnd::kInvalid);
  EXPECT_EQ(EndOf("\"a\nb\""), JsonEnd::kInvalid);
}

TEST(JsonValueTest, RawControlBytesAreTakenWhereAsked) {
  EXPECT_EQ(ReadJson("\"a\nb\"", JsonStrings::kRawControl).value.text, "a\nb");
}

TEST(JsonValueTest, TheEndOfTheValueIsReportedAndMoreIsRefusedByParse) {
  JsonRead read = ReadJson(R"(  {"a":1}{"b":2})");
  EXPECT_EQ(read.end, JsonEnd::kComplete);
  EXPECT_EQ(read.consumed, 9U);
  EXPECT_FALSE(ParseJson(R"({"a":1}{"b":2})").ok());
  EXPECT_TRUE(ParseJson("{\"a\":1} \n").ok());
  EXPECT_FALSE(ParseJson("").ok());
}

TEST(JsonValueTest, DepthIsBoundedAtTheLimitAndOnePast) {
  auto nested = [](int depth) {
    auto count = static_cast<std::size_t>(depth);
    return std::string(count, '[') + std::string(count, ']');
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth + 1)).ok());
  EXPECT_FALSE(ParseJson(nested(kMaxJsonDepth + 2)).ok());
  EXPECT_EQ(EndOf(std::string(1'000'000, '[')), JsonEnd::kInvalid);
}

TEST(JsonValueTest, TheNumberOfValuesIsBoundedAtTheLimitAndOnePast) {
  auto list = [](std::size_t values) {  // the array itself is one of them
    std::string text = "[1";
    for (std::size_t i = 2; i < values; ++i) text += ",1";
    return text + "]";
  };
  EXPECT_TRUE(ParseJson(list(kMaxJsonValues)).ok());
  EXPECT_FALSE(ParseJson(list(kMaxJsonValues + 1)).ok());
}

}  // namespace
}  // namespace taskcell
