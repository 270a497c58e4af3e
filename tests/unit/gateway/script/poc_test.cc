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

TEST(PocTest, TheEvidenceIsOneJsonObject) {
  EXPECT_EQ(PocJson({"poc_skipped", "a \"b\"\n"}),
            R"({"kind":"poc_skipped","detail":"a \"b\"\u000a"})");
}

}  // namespace
}  // namespace taskcell::gateway
