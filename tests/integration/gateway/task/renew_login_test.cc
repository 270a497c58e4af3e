// A login that ends is renewed once for everybody who wants it, and neither a bad endpoint nor a
// kill costs one that is still good. The endpoint speaks TLS on loopback.
#include "gateway/task/renew_login.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <thread>

#include "gateway/config/oauth_document.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/egress/token_request.h"
#include "launcher/base/text.h"
#include "tests/integration/gateway/egress/proxy_process.h"
#include "tests/support/fixture.h"
#include "tests/support/kill_at_call.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tls_certificate.h"
#include "tests/support/token_endpoint.h"
#include "tests/support/wait_for.h"

namespace taskcell::gateway {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr char kName[] = "login/doc.json";

class RenewLoginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    certificate_ = test::MakeCertificate(directory_.path(), "localhost");
    ASSERT_NE(certificate_, "");
    PutDocument("access-0", "refresh-0", -10);
  }

  // A document whose token ends in `life` seconds.
  void PutDocument(const std::string& access, const std::string& refresh, int64_t life) {
    const Json document = {{"claudeAiOauth",
                            {{"accessToken", access},
                             {"refreshToken", refresh},
                             {"expiresAt", (::time(nullptr) + life) * 1000},
                             {"scopes", {"user:inference"}}}},
                           {"theirs", 7}};
    directory_.Put(kName, document.dump());
    fs::permissions(directory_.At("login"), fs::perms(0700));
    fs::permissions(directory_.At(kName), fs::perms(0600));
  }
  Json Document(const std::string& name = kName) const { return Json::parse(directory_.Get(name)); }
  std::string RefreshToken(const std::string& name = kName) const {
    return Document(name)["claudeAiOauth"]["refreshToken"];
  }
  bool Exists(const std::string& name) const { return fs::exists(directory_.At(name)); }

  OauthLogin Login(const std::string& url, int64_t expires_in = -10) const {
    OauthLogin login;
    login.expires_at = ::time(nullptr) + expires_in;
    login.file = directory_.At(kName);
    login.endpoint = {url, "client-1", false};
    return login;
  }
  RenewalTerms Terms(const std::string& access = "access-0", int64_t needed_s = 60) const {
    TaskcellSettings settings;
    settings.ca_file = certificate_;
    RenewalTerms terms;
    terms.provider = "anthropic";
    terms.access_token = access;
    terms.needed_until = ::time(nullptr) + needed_s;
    terms.uplink = ReadUplink(settings).value();
    terms.is_cancelled = [] { return false; };
    return terms;
  }
  // One renewal in this process.
  Result<std::optional<sys::SecretText>> Renew(const std::string& url) {
    OauthLogin login = Login(url);
    return RenewLogin(login, Terms(), warnings_);
  }
  // The same in another one.
  test::Outcome RenewElsewhere(const std::string& url) const {
    return test::Run({RENEW_ONCE, directory_.At(kName), url, certificate_});
  }

  test::TempDirectory directory_{"login"};
  std::string certificate_;
  std::vector<std::string> warnings_;
};

TEST_F(RenewLoginTest, AnEndedLoginIsRenewedAndTheOldOneStaysUntilTheNewIsProven) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  const std::string before = directory_.Get(kName);
  OauthLogin login = Login(endpoint.Url("/token"));
  auto renewed = RenewLogin(login, Terms(), warnings_);
  ASSERT_TRUE(renewed.ok()) << renewed.error().text;
  EXPECT_EQ(renewed.value(), "access-1");
  EXPECT_GT(login.expires_at, ::time(nullptr) + 3000);
  const Json after = Document();
  EXPECT_EQ(after["claudeAiOauth"]["accessToken"], "access-1");
  EXPECT_EQ(after["claudeAiOauth"]["refreshToken"], "refresh-1");
  EXPECT_EQ(after["claudeAiOauth"]["scopes"], Json({"user:inference"})) << "all else stays";
  EXPECT_EQ(after["theirs"], 7);
  EXPECT_EQ(directory_.Get("login/doc.json.previous"), before);
  for (const char* name : {kName, "login/doc.json.previous", "login/doc.json.lock"}) {
    struct stat info = {};
    ASSERT_EQ(::stat(directory_.At(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << name;
  }
  EXPECT_FALSE(Exists("login/doc.json.new"));

  ProveLogin(login, "anthropic", "another token");
  EXPECT_TRUE(Exists("login/doc.json.previous")) << "that proves nothing";
  ProveLogin(login, "anthropic", "access-1");
  EXPECT_FALSE(Exists("login/doc.json.previous"));
  EXPECT_EQ(RefreshToken(), "refresh-1");

  ASSERT_EQ(endpoint.Log().size(), 1U);
  const Json request = endpoint.Log()[0];
  EXPECT_EQ(request["body"], "grant_type=refresh_token&refresh_token=refresh-0&client_id=client-1");
  EXPECT_FALSE(request["headers"].contains("authorization"));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(RenewLoginTest, AnEndpointMayTakeJsonAndMayKeepItsRefreshToken) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  OauthLogin login = Login(endpoint.Url("/plain"));
  login.endpoint.takes_json = true;
  auto renewed = RenewLogin(login, Terms(), warnings_);
  ASSERT_TRUE(renewed.ok()) << renewed.error().text;
  EXPECT_EQ(renewed.value(), "access-1");
  EXPECT_EQ(RefreshToken(), "refresh-0") << "none came, so the old one stays";
  EXPECT_EQ(Json::parse(endpoint.Log()[0]["body"].get<std::string>())["refresh_token"],
            "refresh-0");
}

TEST_F(RenewLoginTest, ALoginThatLastsIsNotTouched) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  OauthLogin login = Login(endpoint.Url("/token"), 3600);
  auto renewed = RenewLogin(login, Terms(), warnings_);
  ASSERT_TRUE(renewed.ok());
  EXPECT_FALSE(renewed->has_value());
  EXPECT_TRUE(endpoint.Log().empty());
  EXPECT_FALSE(Exists("login/doc.json.lock")) << "nothing is written";
  // Refused by the provider, or ending before the task: it is.
  login.refused = true;
  EXPECT_EQ(RenewLogin(login, Terms(), warnings_).value(), "access-1");
  PutDocument("access-0", "refresh-1", 100);
  OauthLogin short_lived = Login(endpoint.Url("/token"), 100);
  EXPECT_EQ(RenewLogin(short_lived, Terms("access-0", 1800), warnings_).value(), "access-2");
}

TEST_F(RenewLoginTest, ATokenThatStillLastsIsUsedWhereItCannotBeRenewed) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  OauthLogin login = Login(endpoint.Url("/broken"), 300);
  auto renewed = RenewLogin(login, Terms("access-0", 1800), warnings_);
  ASSERT_TRUE(renewed.ok()) << renewed.error().text;
  EXPECT_FALSE(renewed->has_value());
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("it answered 503"), std::string::npos) << warnings_[0];
}

// The endpoint burns what is used twice, so a second renewal of the same token would fail.
TEST_F(RenewLoginTest, OfManyProcessesAtOnceOneRenewsAndAllGetItsToken) {
  constexpr int kProcesses = 6;
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  std::vector<test::Outcome> outcomes(kProcesses);
  std::vector<std::thread> threads;
  for (test::Outcome& outcome : outcomes)
    threads.emplace_back([&] { outcome = RenewElsewhere(endpoint.Url("/hold")); });
  EXPECT_TRUE(test::WaitFor([&] { return !endpoint.Log().empty(); }));
  auto here = std::thread([&] {
    auto renewed = Renew(endpoint.Url("/hold"));
    EXPECT_TRUE(renewed.ok() && renewed.value() == "access-1");
  });
  endpoint.Release();
  for (std::thread& thread : threads) thread.join();
  here.join();
  for (const test::Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "access-1");
  }
  EXPECT_EQ(endpoint.Log().size(), 1U);
}

TEST_F(RenewLoginTest, ALoginThatIsOverSaysSoAndNothingOfItIsRepeated) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  const std::string before = directory_.Get(kName);
  auto renewed = Renew(endpoint.Url("/over"));
  ASSERT_FALSE(renewed.ok());
  EXPECT_EQ(renewed.error().code, "auth_failed");
  EXPECT_NE(renewed.error().text.find("the login is over (400 invalid_grant)"), std::string::npos)
      << renewed.error().text;
  EXPECT_EQ(renewed.error().text.find("refresh-0"), std::string::npos) << renewed.error().text;
  EXPECT_EQ(directory_.Get(kName), before);
  EXPECT_FALSE(Exists("login/doc.json.previous"));
}

TEST_F(RenewLoginTest, ABadEndpointCostsNothing) {
  struct Row {
    const char* path;
    const char* part;
  };
  const Row rows[] = {{"/huge", "more than 65536 bytes"},
                      {"/half", "broke off"},
                      {"/nonsense", "without an access token"},
                      {"/empty", "without an access token"},
                      {"/moved", "it answered 302"},
                      {"/broken", "it answered 503"}};
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  const std::string before = directory_.Get(kName);
  for (const Row& row : rows) {
    auto renewed = Renew(endpoint.Url(row.path));
    ASSERT_FALSE(renewed.ok()) << row.path;
    EXPECT_EQ(renewed.error().code, "provider_unavailable") << row.path;
    EXPECT_NE(renewed.error().text.find(row.part), std::string::npos) << renewed.error().text;
    EXPECT_EQ(directory_.Get(kName), before) << row.path;
    EXPECT_FALSE(Exists("login/doc.json.new")) << row.path;
  }
  EXPECT_EQ(endpoint.Log().size(), std::size(rows)) << "no redirect was followed";
  EXPECT_EQ(Renew(endpoint.Url("/token")).value(), "access-1") << "it is as good as before";
}

TEST_F(RenewLoginTest, AnEndpointWithoutAnEndIsLeftAfterItsTimeOrWhenAskedTo) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  const TokenEndpoint mute{endpoint.Url("/mute"), "client-1", false};
  const TokenEndpoint endless{endpoint.Url("/endless"), "client-1", false};
  const Uplink uplink = Terms().uplink;
  for (const TokenEndpoint* each : {&mute, &endless}) {
    auto late = AskForTokens(
        *each, "r", uplink, [] { return false; }, std::chrono::seconds(2));
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, "provider_unavailable");
    EXPECT_NE(late.error().text.find("within 2 s"), std::string::npos) << late.error().text;
  }
  auto stopped = AskForTokens(mute, "r", uplink, [] { return true; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, "stopped");
}

TEST_F(RenewLoginTest, NothingIsSentWhereTheCertificateDoesNotHold) {
  const std::string other = test::MakeCertificate(directory_.path(), "elsewhere.test");
  test::TokenEndpointProcess endpoint(directory_.path(), other);
  ASSERT_TRUE(endpoint.IsUp());
  auto renewed = Renew(endpoint.Url("/token"));
  ASSERT_FALSE(renewed.ok());
  EXPECT_EQ(renewed.error().code, "provider_unavailable");
  EXPECT_NE(renewed.error().text.find("no verified connection"), std::string::npos)
      << renewed.error().text;
  EXPECT_TRUE(endpoint.Log().empty());
}

TEST_F(RenewLoginTest, TheOperatorsProxyIsAskedForATunnelAndSeesNothingOfIt) {
  const std::string certificate = test::MakeCertificate(directory_.path(), "auth.invalid");
  test::TokenEndpointProcess endpoint(directory_.path(), certificate);
  ASSERT_TRUE(endpoint.IsUp());
  const std::string url = endpoint.Url("");
  const auto port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  Proxy proxy(directory_.path(), port, 0);
  OauthLogin login = Login("https://auth.invalid/token");
  RenewalTerms terms = Terms();
  TaskcellSettings settings;
  settings.ca_file = certificate;
  terms.uplink = ReadUplink(settings).value();
  terms.uplink.proxy = proxy.Url();
  auto renewed = RenewLogin(login, terms, warnings_);
  ASSERT_TRUE(renewed.ok()) << renewed.error().text;
  EXPECT_EQ(renewed.value(), "access-1");
  EXPECT_NE(proxy.Log().find("CONNECT auth.invalid:443"), std::string::npos) << proxy.Log();
  EXPECT_EQ(proxy.Log().find("refresh"), std::string::npos) << proxy.Log();
}

// The new document's own refresh token is no good: the one it replaced still is.
TEST_F(RenewLoginTest, WhereTheUnprovenOneIsNotTakenTheOldOneIsTried) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  ASSERT_EQ(Renew(endpoint.Url("/plain")).value(), "access-1");
  Json document = Document();
  document["claudeAiOauth"]["refreshToken"] = "one that was never issued";
  document["claudeAiOauth"]["expiresAt"] = 1000;
  directory_.Put(kName, document.dump());
  OauthLogin login = Login(endpoint.Url("/token"));
  auto renewed = RenewLogin(login, Terms("access-1"), warnings_);
  ASSERT_TRUE(renewed.ok()) << renewed.error().text;
  EXPECT_EQ(endpoint.Log().size(), 3U);
  EXPECT_EQ(RefreshToken(), "refresh-1");
  EXPECT_TRUE(Exists("login/doc.json.previous"));

  // Whoever signs in anew puts a document there that is not ours: nothing old is tried for it.
  PutDocument("new", "over anyway", -10);
  OauthLogin another = Login(endpoint.Url("/token"));
  auto over = RenewLogin(another, Terms("new"), warnings_);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, "auth_failed");
  EXPECT_EQ(endpoint.Log().size(), 4U);
}

TEST_F(RenewLoginTest, NoTokenIsAskedForThatCouldNotBeKept) {
  test::TokenEndpointProcess endpoint(directory_.path(), certificate_);
  ASSERT_TRUE(endpoint.IsUp());
  fs::permissions(directory_.At("login"), fs::perms(0777));
  auto shared = Renew(endpoint.Url("/token"));
  ASSERT_FALSE(shared.ok());
  EXPECT_NE(shared.error().text.find("a directory of its own"), std::string::npos)
      << shared.error().text;
  fs::permissions(directory_.At("login"), fs::perms(0700));
  fs::rename(directory_.At(kName), directory_.At("login/real"));
  directory_.Link(directory_.At("login/real"), kName);
  auto linked = Renew(endpoint.Url("/token"));
  ASSERT_FALSE(linked.ok());
  EXPECT_NE(linked.error().text.find("not a plain file"), std::string::npos) << linked.error().text;
  // Where there is no room for a new one, the old one must not be burnt.
  fs::remove(directory_.At(kName));
  fs::rename(directory_.At("login/real"), directory_.At(kName));
  fs::create_directory(directory_.At("login/doc.json.new"));
  auto full = Renew(endpoint.Url("/token"));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, "workspace_failed");
  EXPECT_TRUE(endpoint.Log().empty());
}

class RenewLoginKillTest : public RenewLoginTest {
 protected:
  static constexpr int kKilled = 137;

  int RenewAndDie(const std::string& url, const std::vector<long>& calls, int nth) const {
    return test::KillAtCall(
        [&] {
          (void)::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // none are found while traced
          ::execl(RENEW_ONCE, RENEW_ONCE, directory_.At(kName).c_str(), url.c_str(),
                  certificate_.c_str(), nullptr);
        },
        calls, nth);
  }

  // Kills at call after call; each time the document is whole, and whoever comes next gets a token.
  int KillAtEach(const std::vector<long>& calls, int grace) {
    int nth = 1;
    for (int status = kKilled; status == kKilled; ++nth) {
      test::TokenEndpointProcess endpoint(directory_.path(), certificate_, "", grace);
      EXPECT_TRUE(endpoint.IsUp());
      fs::remove_all(directory_.At("login"));
      PutDocument("access-0", "refresh-0", -10);
      status = RenewAndDie(endpoint.Url("/token"), calls, nth);
      EXPECT_TRUE(status == kKilled || status == 0) << status;
      EXPECT_FALSE(RefreshToken().empty()) << "whole at any time";
      const test::Outcome next = RenewElsewhere(endpoint.Url("/token"));
      EXPECT_EQ(next.status, 0) << "killed at call " << nth << ": " << next.err;
      EXPECT_FALSE(Exists("login/doc.json.new")) << nth;
      if (HasFailure()) break;
    }
    return nth - 2;
  }
};

// From the moment the new document is written, not even an endpoint that burns what is used twice
// costs the login.
TEST_F(RenewLoginKillTest, KilledAfterTheNewOneIsWrittenItIsFinishedByTheNext) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to kill at a call");
  EXPECT_GE(KillAtEach({SYS_fsync, SYS_linkat, SYS_renameat, SYS_renameat2, SYS_unlinkat}, 0), 8);
}

// Before that, the answer may be lost on its way: an endpoint that lets the last one be used again
// makes up for it.
TEST_F(RenewLoginKillTest, KilledAtAnyOtherChangeTheOldOneIsStillThere) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to kill at a call");
  EXPECT_GE(KillAtEach({SYS_write, SYS_openat2, SYS_flock}, 1), 5);
}

}  // namespace
}  // namespace taskcell::gateway
