#include "gateway/script/poc.h"

#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

TEST(PocTest, SecretsAreMaskedAndProseIsNot) {
  const std::string rest(24, 'k');
  for (const char* prefix : {"sk-", "AIza", "ghp_", "AKIA", "xai-"}) {
    EXPECT_EQ(MaskSecrets(Text("key=", prefix, rest, "\nnext")), "key=<redacted>\nnext") << prefix;
  }
  EXPECT_EQ(MaskSecrets(Text("Authorization: Bearer ", rest, "; x")),
            "Authorization: Bearer <redacted>; x");
  EXPECT_EQ(MaskSecrets("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nend"),
            "<redacted>\nend");
  EXPECT_EQ(MaskSecrets("-----BEGIN EC PRIVATE KEY-----\nabc"), "<redacted>") << "cut short";
  for (const char* prose : {"a task-force", "sk-short", "Bearer of news",
                            "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"})
    EXPECT_EQ(MaskSecrets(prose), prose);
}

TEST(PocTest, ATextIsCutToItsBoundWithTheMark) {
  const std::string whole(kMaxPocBytes, 'x');
  EXPECT_EQ(PocText(whole), whole);
  const std::string cut = PocText(whole + "x");
  EXPECT_EQ(cut.size(), kMaxPocBytes);
  EXPECT_TRUE(cut.ends_with("x\n...[truncated]")) << cut.substr(3900);
  const std::string wide = PocText(std::string(kMaxPocBytes, '\xff'));
  EXPECT_LE(wide.size(), kMaxPocBytes) << "what is no text takes three bytes each";
  EXPECT_TRUE(wide.ends_with("\n...[truncated]"));
}

TEST(PocTest, TheEvidenceIsOneJsonObject) {
  EXPECT_EQ(PocJson({"poc_skipped", "a \"b\"\n"}),
            R"({"kind":"poc_skipped","detail":"a \"b\"\u000a"})");
}

}  // namespace
}  // namespace taskcell::gateway
