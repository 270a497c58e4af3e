#include "gateway/config/accounts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "gateway/config/account_wish.h"
#include "gateway/config/oauth_document.h"
#include "gateway/config/secret.h"
#include "gateway/config/token_endpoint.h"
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

TEST_F(AccountsTest, ALoginInTheHostsKeychainAloneIsNoAccountAndThatIsSaid) {
  const std::vector<Account> accounts =
      Load("[[accounts]]\nid = \"me\"\ntype = \"oauth\"\n", {}).value();
  const Result<std::vector<Account>> fitting = FittingAccounts(accounts, Claude());
  ASSERT_FALSE(fitting.ok());
  EXPECT_EQ(fitting.error().code, "no_account");
  for (const char* said : {"host keychain cannot enter the container", "claude setup-token"})
    EXPECT_NE(fitting.error().text.find(said), std::string::npos) << fitting.error().text;
}

TEST_F(AccountsTest, WithoutOneTheErrorSaysWhatTheRuntimeTakes) {
  struct Row {
    AccountWish wish;
    const char* takes;
  };
  for (const Row& row :
       {Row{{"claude", "anthropic", true, {}}, "an Anthropic API key, or an OAuth account with"},
        Row{{"codex", "openai", false, {}}, "an OpenAI API key"},
        Row{{"codex", "openai", false, {}, true},
            "an OpenAI API key, or an OAuth account whose secret is a Codex auth.json"},
        Row{{"antigravity", "gemini", false, {}}, "a Gemini API key"},
        Row{{"grok", "xai", false, {}}, "an xAI API key"},
        Row{{"openai-compat", "groq", false, {}}, "an API key account of provider `groq`"}}) {
    const Result<std::vector<Account>> none = FittingAccounts({}, row.wish);
    ASSERT_FALSE(none.ok()) << row.wish.family;
    EXPECT_EQ(none.error().code, "no_account");
    EXPECT_EQ(none.error().text.find(Text("no account can run `", row.wish.family,
                                          "` inside the sandbox; it needs ", row.takes)),
              0U)
        << none.error().text;
  }
}

// What cannot be read as a time is no promise that the token lasts.
TEST_F(AccountsTest, AnExpiryOfAnotherTypeMakesTheAccountUnusableByName) {
  const Environment environment = {{"TOKEN", "sk-ant-oat01-x"}};
  for (const auto& [value, type] : std::vector<std::pair<std::string, std::string>>{
           {"4102444800", "an integer"},
           {"4102444800.5", "a"},
           {"true", "a boolean"},
           {"[\"2099-01-01T00:00:00Z\"]", "an array"},
           {"{ at = \"2099-01-01T00:00:00Z\" }", "a table"}}) {
    const std::vector<Account> accounts =
        Load(
            "[account_loading]\ninherit_host_credentials = false\n"
            "[[accounts]]\nid = \"odd\"\ntype = \"oauth\"\noauth_token = \"secret://env/TOKEN\"\n"
            "expires_at = " +
                value + "\n",
            environment)
            .value();
    ASSERT_EQ(accounts.size(), 1U);
    EXPECT_TRUE(accounts[0].unavailable.starts_with("its expires_at is " + type))
        << value << ": " << accounts[0].unavailable;
    const auto fitting = FittingAccounts(accounts, Claude());
    ASSERT_FALSE(fitting.ok()) << value;
    EXPECT_EQ(fitting.error().code, "no_account") << value;
  }
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

// Whoever is sent one would get the token that renews it as well.
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

std::string LoginDocument(int64_t life, std::string_view refresh_token = "never-sent") {
  return Text(R"({"claudeAiOauth":{"accessToken":"sk-ant-oat01-x","expiresAt":)",
              (std::time(nullptr) + life) * 1000, R"(,"refreshToken":")", refresh_token, "\"}}");
}

class LoginAccountTest : public AccountsTest {
 protected:
  static constexpr std::string_view kEndpoint =
      "[taskcell.oauth.anthropic]\ntoken_endpoint = \"https://auth.example/token\"\nclient_id = "
      "\"c\"\n";

  // The one account whose secret is `document`, in a file of its own or in the environment.
  Account Only(const std::string& document, bool in_file, std::string_view more = "",
               std::string_view provider = "anthropic") const {
    const std::string file = path_ + "/doc.json";
    std::ofstream(file) << document;
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    std::vector<Account> accounts =
        Load(Text(more, "[[accounts]]\nid = \"p\"\ntype = \"oauth\"\nprovider = \"", provider,
                  "\"\noauth_token = \"", in_file ? Text("secret://file/", file) : "secret://env/D",
                  "\"\n"),
             {{"D", document}})
            .value();
    EXPECT_EQ(accounts.size(), 1U);
    return accounts.at(0);
  }
};

TEST_F(LoginAccountTest, OneThatLastsIsUsedWhereverItStands) {
  for (bool in_file : {true, false}) {
    const Account account = Only(LoginDocument(3600), in_file);
    EXPECT_EQ(account.unavailable, "");
    EXPECT_EQ(account.secret, "sk-ant-oat01-x");
    ASSERT_TRUE(account.login.has_value());
    EXPECT_FALSE(account.login->CanBeRenewed());
    AccountWish wish = Claude();
    EXPECT_FALSE(FittingAccounts({account}, wish).ok()) << "only where a document will do";
    wish.document = true;
    EXPECT_TRUE(FittingAccounts({account}, wish).ok());
  }
}

TEST_F(LoginAccountTest, OneThatHasEndedIsUsableWhereItCanBeRenewedElseItSaysWhyNot) {
  const Account good = Only(LoginDocument(-5), true, kEndpoint);
  EXPECT_EQ(good.unavailable, "");
  ASSERT_TRUE(good.login.has_value());
  EXPECT_TRUE(good.login->CanBeRenewed());
  EXPECT_EQ(good.login->endpoint.url, "https://auth.example/token");
  struct Row {
    Account account;
    const char* part;
  };
  const Row rows[] = {
      {Only(LoginDocument(-5), true), "[taskcell.oauth.anthropic] does not say where"},
      {Only(LoginDocument(-5), false, kEndpoint), "in a file of its own"},
      {Only(LoginDocument(-5, ""), true, kEndpoint), "no refresh token: sign in anew"},
      {Only(LoginDocument(kTokenSlackSeconds - 5), true), "has ended"},
      {Only("{}", true, kEndpoint), "without claudeAiOauth.accessToken"},
      {Only("{\"claudeAiOauth\":{\"accessToken\":\"x\"}}", true, kEndpoint), "when its token ends"},
      {Only("{\"a\":", true, kEndpoint), "no JSON object"},
      {Only(LoginDocument(3600), true, "", "xai"), "a shape that is not known"},
  };
  for (const Row& row : rows) {
    EXPECT_NE(row.account.unavailable.find(row.part), std::string::npos) << row.account.unavailable;
    EXPECT_EQ(row.account.unavailable.find("never-sent"), std::string::npos);
    EXPECT_EQ(row.account.secret, "") << row.part;
  }
}

TEST_F(LoginAccountTest, ADirectoryThatOthersWriteIsNoPlaceForARenewedOne) {
  std::filesystem::permissions(path_, std::filesystem::perms(0777));
  const Account account = Only(LoginDocument(-5), true, kEndpoint);
  EXPECT_NE(account.unavailable.find("a directory of its own"), std::string::npos)
      << account.unavailable;
}

// Of codex's auth.json: the token itself says when it ends, and the provider's endpoint is known.
TEST_F(LoginAccountTest, CodexDocumentsSayByTheirTokenWhenTheyEnd) {
  auto token = [](std::string_view claims) {
    return Text("e30.", claims, ".c2ln");  // base64url of the claims
  };
  auto document = [](std::string_view access) {
    return Text(R"({"OPENAI_API_KEY":null,"tokens":{"id_token":"i","access_token":")", access,
                R"(","refresh_token":"r","account_id":"acct-1"}})");
  };
  // {"exp":4102444800} and {"exp":1}
  const Account lasting = Only(document(token("eyJleHAiOjQxMDI0NDQ4MDB9")), true, "", "openai");
  EXPECT_EQ(lasting.unavailable, "");
  ASSERT_TRUE(lasting.login.has_value());
  EXPECT_EQ(lasting.login->expires_at, 4102444800);
  EXPECT_EQ(lasting.login->account, "acct-1");
  EXPECT_TRUE(lasting.login->CanBeRenewed()) << lasting.login->not_renewed;
  EXPECT_TRUE(lasting.login->endpoint.takes_json);
  EXPECT_EQ(Only(document(token("eyJleHAiOjF9")), true, "", "openai").login->expires_at, 1);
  EXPECT_NE(Only(document("opaque"), true, "", "openai").unavailable, "");
}

TEST(OauthDocumentTest, ARenewedOneKeepsAllThatIsNotRenewed) {
  RenewedTokens tokens;
  tokens.access_token = "a2";
  tokens.expires_in = 100;
  const std::string old =
      R"({"x":[1,{"y":"z"}],"tokens":{"access_token":"a1","refresh_token":"r1","id_token":"i1"}})";
  const std::string renewed(RenewDocument(old, "openai", tokens, 1000, "digest").value().view());
  OauthDocument read = ReadOauthDocument(renewed, "openai").value();
  EXPECT_EQ(read.access_token, "a2");
  EXPECT_EQ(read.refresh_token, "r1");
  EXPECT_EQ(read.expires_at, 1100);
  EXPECT_EQ(read.previous, "digest");
  EXPECT_NE(renewed.find("\"y\": \"z\""), std::string::npos) << renewed;
  EXPECT_NE(renewed.find("\"id_token\": \"i1\""), std::string::npos) << renewed;
}

TEST(OauthDocumentTest, DeepOrOddTextIsNoDocumentAndNoAnswer) {
  const std::string deep = std::string(60000, '[');
  for (const std::string& text : {deep, std::string("[]"), std::string("null"), std::string(""),
                                  std::string("{\"claudeAiOauth\":[]}"),
                                  std::string("{\"claudeAiOauth\":{\"accessToken\":5}}")}) {
    EXPECT_FALSE(ReadOauthDocument(text, "anthropic").ok()) << text.substr(0, 40);
    EXPECT_FALSE(ReadTokenAnswer(text).ok()) << text.substr(0, 40);
  }
  EXPECT_FALSE(ReadTokenAnswer("{\"access_token\":\"a\\nb\"}").ok());
  EXPECT_TRUE(ReadTokenAnswer("{\"access_token\":\"ab\",\"expires_in\":1e3}").ok());
}

TEST(TokenEndpointTest, TheTableIsReadStrictly) {
  auto read = [](std::string_view text) {
    return ReadTokenEndpoints(ParseToml(text, "config.toml").value());
  };
  const TokenEndpoints own = read("").value();
  EXPECT_EQ(own.size(), 1U) << "the one provider that publishes its own";
  EXPECT_EQ(own.at("openai").url, "https://auth.openai.com/oauth/token");
  constexpr std::string_view kStart = "[taskcell.oauth.anthropic]\n";
  constexpr std::string_view kUrl = "token_endpoint = \"https://a.example/t\"\n";
  const TokenEndpoints set =
      read(Text(kStart, kUrl, "client_id = \"c\"\nrequest = \"json\"\n")).value();
  EXPECT_TRUE(set.at("anthropic").takes_json);
  for (const std::string& bad :
       {Text(kStart, kUrl), Text(kStart, "client_id = \"c\"\n"),
        Text(kStart, kUrl, "client_id = \"c d\"\n"), Text(kStart, kUrl, "client_id = 5\n"),
        Text(kStart, kUrl, "client_id = \"c\"\nsecret = \"s\"\n"),
        Text(kStart, kUrl, "client_id = \"c\"\nrequest = \"xml\"\n"),
        Text(kStart, "token_endpoint = \"ftp://a/t\"\nclient_id = \"c\"\n"),
        Text(kStart, "token_endpoint = \"https://u@a/t\"\nclient_id = \"c\"\n"),
        std::string("[taskcell]\noauth = 5\n"), std::string("[taskcell.oauth]\nopenai = 5\n")})
    EXPECT_FALSE(read(bad).ok()) << bad;
}

TEST(SecretTest, EveryChangedByteIsNoticed) {
  std::string encoded = Encrypt("the secret", kKey, kNonce).value();
  ASSERT_EQ(Decrypt(encoded, kKey).value(), "the secret");
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    std::string changed = encoded;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    Result<SecretText> plain = Decrypt(changed, kKey);
    EXPECT_TRUE(!plain.ok() || changed == encoded) << i;
  }
  for (std::string_view bad : {"", "AAAA", "not base64!", "AAA", "====", "AA==BBBB"})
    EXPECT_FALSE(Decrypt(bad, kKey).ok()) << bad;
}

TEST_F(AccountsTest, AKeyHasABudgetAndAnOauthAccountOneWhereItIsSet) {
  const std::vector<Account> accounts = Load(R"(
[[accounts]]
id = "plain"
api_key = "k"
[[accounts]]
id = "set"
api_key = "k"
monthly_budget_cents = 0
[[accounts]]
id = "oauth"
type = "oauth"
)",
                                             {{"OPENAI_API_KEY", "k"}})
                                            .value();
  const std::map<std::string, std::optional<uint64_t>> budgets = [&] {
    std::map<std::string, std::optional<uint64_t>> by_id;
    for (const Account& account : accounts) by_id[account.id] = account.budget_cents;
    return by_id;
  }();
  EXPECT_EQ(budgets.at("plain"), kDefaultBudgetCents);
  EXPECT_EQ(budgets.at("set"), 0U);
  EXPECT_FALSE(budgets.at("oauth").has_value());
  EXPECT_FALSE(budgets.at("openai-env").has_value()) << "there is no place to set it";
  for (const char* value : {"-1", "\"5\"", "1.5", "1000000000001"}) {
    Result<std::vector<Account>> bad =
        Load(Text("[[accounts]]\nid = \"a\"\nmonthly_budget_cents = ", value));
    ASSERT_FALSE(bad.ok()) << value;
    EXPECT_NE(bad.error().text.find("monthly_budget_cents"), std::string::npos);
  }
}

}  // namespace
}  // namespace taskcell::gateway
