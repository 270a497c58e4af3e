#include "gateway/egress/json_shorten.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/egress/judge.h"
#include "gateway/egress/limits.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kKept = 8;

TEST(ShortenStringsTest, OnlyWhatStandsBehindTheKeptBytesOfAStringIsLeftOut) {
  const struct {
    std::string_view json;
    std::string_view shorter;
  } rows[] = {
      {R"({"a":"12345678","b":["123456789"]})", R"({"a":"12345678","b":["12345678"]})"},
      {R"({"a key that is long":1})", R"({"a key th":1})"},
      {R"(["1234567\n more","\"\"\"\"\"\"","1234567\\"])",
       R"(["1234567\n","\"\"\"\"","1234567\\"])"},
      {R"(["1234567é more","12345678é"])", R"(["1234567é","12345678"])"},
      {R"(["a long \u0041 text","\u0041 long text","12345678 90 \ud83d\ude00 so long"])",
       R"(["a long \u0041 text","\u0041 long text","12345678\ud83d\ude00 so long"])"},
      {R"({"a":123456789.123456789,"b":   [true, false,           null]})",
       R"({"a":123456789.123456789,"b":   [true, false,           null]})"},
      {"", ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ShortenStrings(row.json, kKept), row.shorter);
    EXPECT_TRUE(row.json.empty() || Json::accept(row.shorter)) << row.shorter;
  }
}

// Behind the kept bytes as well as within them.
TEST(ShortenStringsTest, WhatIsNoJsonStaysNone) {
  for (std::string_view fault :
       {"\n", "\x01", "\\x", "\\", "\\u12", "\\ud83d", "\\ud83d plain \\ude00", "\xc3", "\xc3(",
        "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xff", "\" more"}) {
    for (std::string_view before : {"", "1234567", "12345678901234567890"}) {
      for (std::string_view after : {"", " and so on, at length"}) {
        const std::string json = Text("{\"a\":\"", before, fault, after, "\"}");
        ASSERT_FALSE(Json::accept(json)) << json;
        EXPECT_FALSE(Json::accept(ShortenStrings(json, kKept))) << json;
      }
    }
  }
  for (std::string_view cut : {"[\"123456789", "[\"123456789\\", "[\"", "\"1234567\xc3"})
    EXPECT_FALSE(Json::accept(ShortenStrings(cut, kKept))) << cut;
}

// The judge sees the whole of each string that is compared with anything, and where it ends.
TEST(ShortenStringsTest, NothingHidesBehindALongString) {
  const std::string longest(2 * kEgressJudgedBytes, 'x');
  const auto code_of = [&](std::string_view more) {
    const std::string body = Text(R"({"model":"m","messages":[{"role":"user","content":")", longest,
                                  R"("}])", more, "}");
    const auto refusal = JudgeBody(WireApi::kOpenAiChat, body, {"m"}).refusal;
    return refusal ? std::string(refusal->code) : "";
  };
  EXPECT_EQ(code_of(""), "");
  EXPECT_EQ(code_of(R"(,"tools":[{"type":"web_search"}])"), "egress_server_tool");
  EXPECT_EQ(code_of(R"(,"model":"m")"), "egress_duplicate_key");
  EXPECT_EQ(code_of(Text(",\"", longest, "\":1")), "egress_field");
  EXPECT_EQ(
      JudgeBody(WireApi::kOpenAiChat, Text(R"({"model":"m)", longest, R"(","messages":[]})"), {"m"})
          .refusal->code,
      "egress_model");
}

}  // namespace
}  // namespace taskcell::gateway
