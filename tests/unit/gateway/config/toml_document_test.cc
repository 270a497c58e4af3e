#include "gateway/config/toml_document.h"

#include <gtest/gtest.h>

#include <string>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

std::string Repeat(std::string_view part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

TEST(TomlDocumentTest, ValuesOfEveryTypeAreFoundByKey) {
  ConfigValue document = ParseToml(
                             "s = 'x'\ni = 0x80\nb = true\na = [1, 'two']\nf = 1.5\n"
                             "d = 2030-01-02T03:04:05Z\n[t.u]\nk = 7\n",
                             "config.toml")
                             .value();
  EXPECT_EQ(document.Find("s")->text, "x");
  EXPECT_EQ(document.Find("i")->integer, 128);
  EXPECT_TRUE(document.Find("b")->boolean);
  EXPECT_EQ(document.Find("a")->array.at(1).text, "two");
  EXPECT_EQ(document.Find("f")->type, ConfigValue::Type::kFloat);
  EXPECT_EQ(document.Find("d")->text, "2030-01-02T03:04:05Z");
  EXPECT_EQ(document.Find("t")->Find("u")->Find("k")->integer, 7);
  EXPECT_EQ(document.Find("absent"), nullptr);
}

TEST(TomlDocumentTest, SyntaxErrorNamesTheFileAndTheLine) {
  Result<ConfigValue> parsed = ParseToml("a = 1\nb = = 2\n", "config.toml");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().kind, Kind::kConfig);
  EXPECT_EQ(parsed.error().text.find("config.toml is not valid TOML: line 2"), 0U)
      << parsed.error().text;
}

TEST(TomlDocumentTest, SecretOfABrokenLineIsNotInTheMessage) {
  for (std::string_view line :
       {"api_key = sk-ant-api03-not-quoted\n", "api_key = 123456789012345678901234567890\n",
        "api_key = \"sk-ant-not-closed\n", "sk-ant-key-alone\n", "k = 'a' sk-ant-it's'\n"}) {
    Result<ConfigValue> parsed = ParseToml(line, "config.toml");
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_EQ(parsed.error().text.find("sk-ant"), std::string::npos) << parsed.error().text;
    EXPECT_EQ(parsed.error().text.find("12345678901"), std::string::npos) << parsed.error().text;
  }
}

TEST(TomlDocumentTest, IntegerOutsideSixtyFourBitsIsRefusedAsSuch) {
  for (std::string_view number :
       {"9223372036854775808", "18446744073709551616", "18446744073709551744",
        "100000000000000000000", "0x8000000000000000", "0x10000000000000080",
        "-9223372036854775809", "99999999999999999999999999999999999999"}) {
    Result<ConfigValue> parsed = ParseToml(Text("pids = ", number, "\n"), "config.toml");
    ASSERT_FALSE(parsed.ok()) << number;
  }
  EXPECT_EQ(ParseToml("x = 9223372036854775807\n", "c").value().Find("x")->integer,
            9223372036854775807);
}

TEST(TomlDocumentTest, NestingIsAcceptedAtTheBoundAndRefusedOnePast) {
  auto nested = [](int depth) { return "x = " + Repeat("[", depth) + Repeat("]", depth) + "\n"; };
  EXPECT_TRUE(ParseToml(nested(kMaxTomlNesting), "c").ok());
  EXPECT_FALSE(ParseToml(nested(kMaxTomlNesting + 1), "c").ok());
  EXPECT_FALSE(ParseToml("x = " + Repeat("[", 100000), "c").ok());
  EXPECT_FALSE(ParseToml("x = " + Repeat("{a=", 5000) + "1" + Repeat("}", 5000), "c").ok());
}

TEST(TomlDocumentTest, DottedKeyIsAcceptedAtTheBoundAndRefusedOnePast) {
  auto dotted = [](int parts) { return "x" + Repeat(".b", parts - 1) + " = 1\n"; };
  EXPECT_TRUE(ParseToml(dotted(kMaxTomlKeyParts), "c").ok());
  EXPECT_FALSE(ParseToml(dotted(kMaxTomlKeyParts + 1), "c").ok());
  EXPECT_FALSE(ParseToml("[" + Repeat("a.", 49999) + "a]\n", "c").ok());
}

TEST(TomlDocumentTest, BracketsAndDotsInStringsAndCommentsDoNotCount) {
  const std::string many = Repeat("[.{", 200);
  for (const std::string& text :
       {"a = \"" + many + "\"\n", "a = '" + many + "'\n", "a = \"\"\"\n" + many + "\\\"\n\"\"\"\n",
        "a = '''" + many + "'''\n", "# " + many + "\na = 1\n",
        "\"" + Repeat("[.", 200) + "\" = 1\n",
        "a = \"\"\"\"" + many + "\"\"\"\"\"\nb = \"" + many + "\"\n"})
    EXPECT_TRUE(ParseToml(text, "c").ok()) << ParseToml(text, "c").error().text;
}

TEST(TomlDocumentTest, TextIsAcceptedAtTheSizeBoundAndRefusedOnePast) {
  std::string text = "a = 1\n#";
  text.resize(kMaxConfigBytes, ' ');
  EXPECT_TRUE(ParseToml(text, "c").ok());
  text += ' ';
  EXPECT_FALSE(ParseToml(text, "c").ok());
}

}  // namespace
}  // namespace taskcell::gateway
