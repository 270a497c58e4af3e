#include "gateway/script/language.h"

#include <gtest/gtest.h>

namespace taskcell::gateway {
namespace {

TEST(ScriptLanguageTest, ThreeAreKnownByTheirNames) {
  for (const char* name : {"python", "bash", "javascript"}) {
    Result<ScriptLanguage> language = ParseLanguage(name);
    ASSERT_TRUE(language.ok()) << name;
    EXPECT_EQ(LanguageName(language.value()), name);
  }
  EXPECT_EQ(Interpreter(ScriptLanguage::kPython), "python3");
  EXPECT_EQ(Interpreter(ScriptLanguage::kBash), "bash");
  EXPECT_EQ(Interpreter(ScriptLanguage::kJavascript), "node");
}

TEST(ScriptLanguageTest, AnyOtherIsRefusedInTheGuidesWords) {
  for (const char* name : {"", "Python", "sh", "ruby"}) {
    Result<ScriptLanguage> language = ParseLanguage(name);
    ASSERT_FALSE(language.ok()) << name;
    EXPECT_EQ(language.error().code, "unsupported_language");
  }
  EXPECT_EQ(ParseLanguage("ruby").error().text,
            "Unsupported language: 'ruby'. Supported: python, bash, javascript");
}

}  // namespace
}  // namespace taskcell::gateway
