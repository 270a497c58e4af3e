#include "gateway/config/accounts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gateway/config/secret.h"
#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/sys/file.h"
#include "tests/support/access_list.h"
#include "tests/support/fixture.h"

namespace taskcell::gateway {
namespace {

const std::string kKey(32, 'k');
const std::string kNonce = "twelve bytes";

class AccountsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    home_ = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void WriteKeyfile(std::string_view key) const { std::ofstream(path_ + "/.keyfile") << key; }
  Result<std::vector<Account>> Load(std::string_view text,
                                    const Environment& environment = {}) const {
    return LoadAccounts(ParseToml(text, "config.toml").value(), home_.get(), environment);
  }

  std::string path_ = "/tmp/taskcell-accounts-test-XXXXXX";
  UniqueFd home_;
};

AccountWish Claude() { return {"claude", "anthropic", true, {}}; }

TEST_F(AccountsTest, PlainAndEncryptedKeysAreRead) {
  WriteKeyfile(kKey);
  const std::string encrypted = Encrypt("enc-secret", kKey, kNonce).value();
  std::vector<Account> accounts =
      Load(Text("[[accounts]]\nid = \"p\"\napi_key = \"plain-secret\"\n"
                "[[accounts]]\nid = \"e\"\npriority = 1\napi_key_enc = \"",
                encrypted, "\"\napi_key = \"never\"\n"))
          .value();
  ASSERT_EQ(accounts.size(), 2U);
  EXPECT_EQ(accounts[0].id, "e");
  EXPECT_EQ(accounts[0].secret, "enc-secret");
  EXPECT_EQ(accounts[1].secret, "plain-secret");
}

TEST_F(AccountsTest, BrokenEncryptedKeyIsNeverReplacedByThePlainOne) {
  WriteKeyfile(std::string(32, 'x'));
  const std::string encrypted = Encrypt("enc-secret", kKey, kNonce).value();
  std::vector<Account> accounts = Load(Text("[[accounts]]\nid = \"e\"\napi_key_enc = \"", encrypted,
                                            "\"\napi_key = \"plain-secret\"\n"))
                                      .value();
  EXPECT_EQ(accounts.at(0).secret, "");
  EXPECT_NE(accounts.at(0).unavailable.find("does not decrypt"), std::string::npos);
  Result<std::vector<Account>> chosen = FittingAccounts(accounts, Claude());
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().code, "no_account");
  EXPECT_NE(chosen.error().text.find("account `e`"), std::string::npos);
  EXPECT_EQ(chosen.error().text.find("plain-secret"), std::string::npos);
}

TEST_F(AccountsTest, KeyfileIsNeededAndNeverMade) {
  const std::string line =
      Text("[[accounts]]\napi_key_enc = \"", Encrypt("s", kKey, kNonce).value(), "\"\n");
  EXPECT_NE(Load(line).value().at(0).unavailable, "");
  EXPECT_FALSE(std::filesystem::exists(path_ + "/.keyfile"));
  for (std::size_t size : {31U, 33U}) {
    WriteKeyfile(std::string(size, 'k'));
    EXPECT_NE(Load(line).value().at(0).unavailable.find("exactly 32 bytes"), std::string::npos);
  }
  WriteKeyfile(kKey);
  EXPECT_EQ(Load(line).value().at(0).secret, "s");
}

TEST_F(AccountsTest, ReferencesAreFollowedOnceAndNeverSent) {
  const Environment environment = {{"MY_KEY", " from-env \n"}};
  std::ofstream(path_ + "/key.txt") << "from-file\n";
  ASSERT_EQ(::chmod((path_ + "/key.txt").c_str(), 0600), 0);
  std::vector<Account> accounts =
      Load(Text("[account_loading]\ninherit_host_credentials = false\n",
                "[[accounts]]\nid = \"1\"\napi_key = \"secret://env/MY_KEY\"\n"
                "[[accounts]]\nid = \"2\"\napi_key = \"secret://file/",
                path_,
                "/key.txt\"\n"
                "[[accounts]]\nid = \"3\"\napi_key = \"secret://vault/x\"\n"
                "[[accounts]]\nid = \"4\"\napi_key = \"secret://env/UNSET\"\n"
                "[[accounts]]\nid = \"5\"\napi_key = \"secret://nonsense\"\n"
                "[[accounts]]\nid = \"6\"\napi_key = \"secret://file/relative\"\n"),
           environment)
          .value();
  ASSERT_EQ(accounts.size(), 6U);
  EXPECT_EQ(accounts[0].secret, "from-env");
  EXPECT_EQ(accounts[1].secret, "from-file");
  for (std::size_t i = 2; i < 6; ++i) {
    EXPECT_EQ(accounts[i].secret, "") << i;
    EXPECT_NE(accounts[i].unavailable, "") << i;
  }
  EXPECT_NE(accounts[2].unavailable.find("vault is not supported"), std::string::npos);
}

TEST_F(AccountsTest, PlainSecretInAFileOthersMayReadIsUnusableWithTheChmodThatMendsIt) {
  const std::string config = path_ + "/config.toml";
  const std::string key = path_ + "/key.txt";
  const std::string text = Text("[account_loading]\ninherit_host_credentials = false\n",
                                "[[accounts]]\nid = \"plain\"\napi_key = \"k\"\n",
                                "[[accounts]]\nid = \"file\"\napi_key = \"secret://file/", key,
                                "\"\n[[accounts]]\nid = \"env\"\napi_key = \"secret://env/K\"\n");
  std::ofstream(config) << text;
  std::ofstream(key) << "k";
  struct Row {
    mode_t mode;
    gid_t group;
    bool usable;
  };
  const bool own = ::getegid() == 0 || mounts::TrustIn(::geteuid()).own_group == ::getegid();
  for (const Row& row :
       {Row{0600, ::getegid(), true}, Row{0640, ::getegid(), own}, Row{0644, ::getegid(), false},
        Row{0640, ::getegid() + 1, false}, Row{0604, ::getegid(), false}}) {
    for (const std::string& path : {config, key}) {
      if (::chown(path.c_str(), static_cast<uid_t>(-1), row.group) != 0)
        GTEST_SKIP() << "needs root, to give a file to another group";
      ASSERT_EQ(::chmod(path.c_str(), row.mode), 0);
    }
    const std::vector<Account> accounts = Load(text, {{"K", "k"}}).value();
    ASSERT_EQ(accounts.size(), 3U);
    EXPECT_EQ(accounts[0].unavailable.empty(), row.usable) << std::oct << row.mode;
    EXPECT_EQ(accounts[1].unavailable.empty(), row.usable) << std::oct << row.mode;
    EXPECT_EQ(accounts[2].unavailable, "") << "nothing of it stands in a file";
    if (row.usable) continue;
    EXPECT_EQ(accounts[0].secret, "");
    EXPECT_NE(accounts[0].unavailable.find("chmod 600 config.toml"), std::string::npos);
    EXPECT_NE(accounts[1].unavailable.find("chmod 600 " + key), std::string::npos);
  }
}

TEST_F(AccountsTest, AListThatLetsSomebodyReadAFileCountsLikeItsMode) {
  const std::string key = path_ + "/key.txt";
  std::ofstream(key) << "k";
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  const std::string reference = "secret://file/" + key;
  TASKCELL_REQUIRE(ResolveReference(reference, {}).ok(), "needs a login group of one's own");
  TASKCELL_REQUIRE(test::LetUser1500Write(key), "needs access control lists on /tmp");
  ASSERT_EQ(::chmod(key.c_str(), 0660), 0) << "the bits of the group are the mask now";
  EXPECT_FALSE(ResolveReference(reference, {}).ok());
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  EXPECT_TRUE(ResolveReference(reference, {}).ok()) << "the remedy helps";
}

TEST_F(AccountsTest, OauthTokenMustNotBePlaintext) {
  const Environment environment = {{"TOKEN", "sk-ant-oat01-x"}};
  std::vector<Account> accounts =
      Load(
          "[account_loading]\ninherit_host_credentials = false\n"
          "[[accounts]]\nid = \"plain\"\ntype = \"oauth\"\noauth_token = \"sk-ant-oat01-y\"\n"
          "[[accounts]]\nid = \"ref\"\ntype = \"oauth\"\noauth_token = \"secret://env/TOKEN\"\n"
          "[[accounts]]\nid = \"old\"\ntype = \"oauth\"\noauth_token = \"secret://env/TOKEN\"\n"
          "expires_at = \"2020-01-01T00:00:00+02:00\"\n"
          "[[accounts]]\nid = \"new\"\ntype = \"oauth\"\noauth_token = \"secret://env/TOKEN\"\n"
          "expires_at = 2099-01-01T00:00:00.5Z\n",
          environment)
          .value();
  ASSERT_EQ(accounts.size(), 4U);
  EXPECT_EQ(accounts[0].unavailable, "it has no secret");
  EXPECT_EQ(accounts[1].unavailable, "");
  EXPECT_NE(accounts[2].unavailable, "");
  EXPECT_EQ(accounts[3].unavailable, "");
  EXPECT_EQ(FittingAccounts(accounts, Claude()).value().at(0).id, "ref");
  AccountWish codex{"codex", "anthropic", false, {}};
  EXPECT_EQ(FittingAccounts(accounts, codex).error().code, "no_account");
}

TEST_F(AccountsTest, UnusableAccountIsPassedOverForTheNext) {
  std::vector<Account> accounts =
      Load(
          "[[accounts]]\nid = \"bad\"\npriority = 1\napi_key = \"secret://env/UNSET\"\n"
          "[[accounts]]\nid = \"good\"\npriority = 2\napi_key = \"k\"\n")
          .value();
  EXPECT_EQ(FittingAccounts(accounts, Claude()).value().at(0).id, "good");
}

TEST_F(AccountsTest, PoolIsNeverWidened) {
  std::vector<Account> accounts =
      Load("[[accounts]]\nid = \"A\"\napi_key = \"k\"\nlabel = \"Work\"\ntags = [\"red\"]\n")
          .value();
  for (std::string_view entry : {"a", "work", "RED"}) {
    AccountWish wish = Claude();
    wish.pool = {std::string(entry)};
    EXPECT_EQ(FittingAccounts(accounts, wish).value().at(0).id, "A") << entry;
  }
  AccountWish wish = Claude();
  wish.pool = {"other"};
  EXPECT_EQ(FittingAccounts(accounts, wish).error().code, "no_account");
}

TEST_F(AccountsTest, EnvironmentKeysAreTheLastResortAndCanBeTurnedOff) {
  const Environment environment = {{"ANTHROPIC_API_KEY", "ka"}, {"OPENAI_API_KEY", "ko"}};
  EXPECT_EQ(FittingAccounts(Load("", environment).value(), Claude()).value().at(0).id, "env");
  AccountWish codex{"codex", "openai", false, {}};
  EXPECT_EQ(FittingAccounts(Load("", environment).value(), codex).value().at(0).id, "openai-env");
  EXPECT_EQ(FittingAccounts(
                Load("[account_loading]\ninherit_host_credentials = false\n", environment).value(),
                Claude())
                .error()
                .code,
            "no_account");
  // A configured account of the provider keeps the environment's key out, even a broken one.
  EXPECT_EQ(FittingAccounts(Load("[[accounts]]\nid = \"x\"\n", environment).value(), Claude())
                .error()
                .code,
            "no_account");
}

TEST_F(AccountsTest, ApiTableIsUsedWhenNothingIsConfigured) {
  EXPECT_EQ(FittingAccounts(Load("[api]\nanthropic_api_key = \"k\"\n").value(), Claude())
                .value()
                .at(0)
                .id,
            "main");
}

TEST_F(AccountsTest, MalformedSectionLeavesNoAccountAtAll) {
  for (std::string_view text : {"accounts = 1\n", "accounts = [1]\n", "[[accounts]]\nid = 1\n",
                                "[[accounts]]\ntype = \"card\"\n", "[[accounts]]\napi_key = 1\n",
                                "[[accounts]]\npriority = \"high\"\n",
                                "[account_loading]\ninherit_host_credentials = 1\n"}) {
    Result<std::vector<Account>> accounts = Load(text, {{"ANTHROPIC_API_KEY", "k"}});
    ASSERT_FALSE(accounts.ok()) << text;
    EXPECT_EQ(accounts.error().code, "invalid_config") << text;
  }
}

TEST_F(AccountsTest, KeyWithALineBreakIsNotUsable) {
  EXPECT_NE(Load("[[accounts]]\napi_key = \"a\\r\\nX-Evil: 1\"\n").value().at(0).unavailable, "");
}

// Its owner would get the token that renews it as well, and taskcell cannot renew one.
TEST_F(AccountsTest, CredentialDocumentIsNeverSent) {
  WriteKeyfile(kKey);
  const std::string document = R"({"tokens":{"access_token":"a","refresh_token":"never-sent"}})";
  const std::string pretty = "{\n  \"tokens\": {\"refresh_token\": \"never-sent\"}\n}\n";
  for (const std::string& secret : {document, pretty}) {
    std::vector<Account> accounts =
        Load(
            "[[accounts]]\nid = \"stored\"\ntype = \"oauth\"\noauth_token_enc = \"" +
                Encrypt(secret, kKey, kNonce).value() +
                "\"\n[[accounts]]\nid = \"env\"\ntype = \"oauth\"\noauth_token = "
                "\"secret://env/DOCUMENT\"\n[[accounts]]\nid = \"key\"\napi_key = "
                "\"secret://env/DOCUMENT\"\n",
            {{"DOCUMENT", secret}, {"CLAUDE_CODE_OAUTH_TOKEN", secret}, {"OPENAI_API_KEY", secret}})
            .value();
    ASSERT_EQ(accounts.size(), 5U);
    for (const Account& account : accounts) {
      EXPECT_EQ(account.secret, "") << account.id;
      EXPECT_NE(account.unavailable.find("credential document"), std::string::npos)
          << account.id << account.unavailable;
      EXPECT_EQ(account.unavailable.find("never-sent"), std::string::npos) << account.unavailable;
    }
    Result<std::vector<Account>> fitting = FittingAccounts(accounts, Claude());
    ASSERT_FALSE(fitting.ok());
    EXPECT_EQ(fitting.error().code, "no_account");
    EXPECT_NE(fitting.error().text.find("claude setup-token"), std::string::npos)
        << fitting.error().text;
  }
}

TEST(SecretTest, EveryChangedByteIsNoticed) {
  std::string encoded = Encrypt("the secret", kKey, kNonce).value();
  ASSERT_EQ(Decrypt(encoded, kKey).value(), "the secret");
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    std::string changed = encoded;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    Result<std::string> plain = Decrypt(changed, kKey);
    EXPECT_TRUE(!plain.ok() || changed == encoded) << i;
  }
  for (std::string_view bad : {"", "AAAA", "not base64!", "AAA", "====", "AA==BBBB"})
    EXPECT_FALSE(Decrypt(bad, kKey).ok()) << bad;
}

}  // namespace
}  // namespace taskcell::gateway
