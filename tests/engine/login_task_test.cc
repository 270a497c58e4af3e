// Tasks whose account is a person's login that has ended, from end to end in native cells: the
// gateway renews it before the cell is made, and nothing of it gets into the cell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "launcher/base/text.h"
#include "tests/engine/task_fixture.h"
#include "tests/support/tls_certificate.h"
#include "tests/support/token_endpoint.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What the stand-in for claude does: it asks its provider once, and says what it sees of secrets.
constexpr std::string_view kBody =
    R"(ask /v1/messages '{"model":"claude-sonnet-4-5","max_tokens":16,"messages":[{"role":"user","content":"x"}]}'
seen=0
while IFS= read -r -d '' each; do case "$each" in *sk-ended*|*sk-renewed*|*refresh[-]*) seen=1;; esac; done < /proc/self/environ
placeholder=none
case "$CLAUDE_CODE_OAUTH_TOKEN$ANTHROPIC_AUTH_TOKEN" in sk-ant-oat01-taskcell-placeholder*) placeholder=there;; esac
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"secret '$seen', placeholder '$placeholder'"}'
)";

class LoginTaskTest : public TaskFixture {
 protected:
  void SetUp() override {
    TaskFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(test::Run({MAKE_SMALL_ROOT, At("root")}).status, 0);
    const std::string made = MakeCertificate(path_, "localhost");
    // The directory of openssl's work is root's alone.
    certificate_ = At("ca.pem");
    fs::copy_file(made, certificate_);
    Put("agents/a1/agent.toml",
        "[agent]\nname = \"a1\"\n[runtime]\nprovider = \"claude\"\n[model]\npreferred = "
        "\"claude-sonnet-4-5\"\n[container]\nsandbox_enabled = true\nnetwork_access = true\n"
        "timeout_ms = 30000\n");
    Put("agents/a1/SKILLS/trap", kBody);
    PutDocument(-10);
  }

  void PutDocument(int64_t life) const {
    Put("login/doc.json", Json{{"claudeAiOauth",
                                {{"accessToken", "sk-ended-access-token"},
                                 {"refreshToken", "refresh-0"},
                                 {"expiresAt", (std::time(nullptr) + life) * 1000}}}}
                              .dump());
    fs::permissions(At("home/login"), fs::perms(0700));
    fs::permissions(At("home/login/doc.json"), fs::perms(0600));
  }

  void PutConfig(const std::string& token_endpoint, std::string_view more = "") const {
    Put("config.toml",
        Text("[taskcell]\nengine = \"native\"\nroot = \"", At("root"), "\"\nca_file = \"",
             certificate_, "\"\n",
             token_endpoint.empty() ? ""
                                    : Text("[taskcell.oauth.anthropic]\ntoken_endpoint = \"",
                                           token_endpoint, "\"\nclient_id = \"client-1\"\n"),
             "[container.sandbox]\nmemory_bytes = 134217728\ntmp_bytes = 16777216\n"
             "workspace_bytes = 16777216\npids = 40\n[[accounts]]\nid = \"person\"\n"
             "type = \"oauth\"\noauth_token = \"secret://file/",
             At("home/login/doc.json"), "\"\n", more));
  }

  Outcome Taskcell(std::vector<std::string> arguments, const std::string& provider) const {
    GiveHomeToUser();
    RunOptions run;
    run.user = user_;
    run.environment = {"ANTHROPIC_BASE_URL=" + provider, Text("SPARE_KEY=", kKey)};
    run.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
    arguments.insert(arguments.begin(), Program("taskcell"));
    arguments.insert(arguments.end(), {"--home", path_ + "/home"});
    return test::Run(arguments, run);
  }

  // Whether a file below the home, the document's own apart, holds `secret`.
  std::set<std::string> FilesWith(std::string_view secret) const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(At("home"))) {
      const std::string name = entry.path();
      if (!entry.is_regular_file() || name.find("/login/") != std::string::npos) continue;
      if (ReadText(name).find(secret) != std::string::npos) names.insert(name);
    }
    return names;
  }

  std::string certificate_;
};

// Looks at the command lines and environments of all processes, over and over.
class Onlooker {
 public:
  Onlooker() : thread_([this] { Look(); }) {}
  // The names of programs that showed a secret, and whether the launcher was seen at all.
  std::pair<std::set<std::string>, bool> Stop() {
    stops_ = true;
    thread_.join();
    return {told_, saw_launcher_};
  }

 private:
  void Look() {
    while (!stops_) {
      std::error_code ignored;  // a process ends when it likes
      for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
        const std::string place = entry.path();
        if (place.find_first_of("0123456789") == std::string::npos) continue;
        const std::string name = ReadText(place + "/comm");
        saw_launcher_ = saw_launcher_ || name.starts_with("taskcell-launch");
        const bool is_ours =
            name.starts_with("taskcell") || name.starts_with("claude") || name.starts_with("bash");
        if (!is_ours) continue;
        const std::string seen = ReadText(place + "/cmdline") + ReadText(place + "/environ");
        for (std::string_view secret : {"refresh-0", "refresh-1", "sk-renewed"})
          if (seen.find(secret) != std::string::npos) told_.insert(name);
      }
    }
  }
  std::atomic<bool> stops_{false};
  std::set<std::string> told_;
  bool saw_launcher_ = false;
  std::thread thread_;
};

TEST_F(LoginTaskTest, AnEndedLoginIsRenewedAndTheTaskRunsWithTheNewToken) {
  constexpr std::string_view kRenewed = "sk-renewed-access-token-0123456789";
  const std::string scenario = At("scenario.json");
  std::ofstream(scenario) << Json{{"steps", Json::array()}, {"reply", "x"}}.dump();
  gateway::ProviderProcess provider(std::string(kRenewed), scenario);
  TokenEndpointProcess endpoint(path_, certificate_, std::string(kRenewed));
  ASSERT_TRUE(provider.IsUp() && endpoint.IsUp());
  PutConfig(endpoint.Url("/token"));

  const Outcome doctor = Taskcell({"doctor"}, provider.Url());
  EXPECT_EQ(doctor.status, 0) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr("its login ends"));
  EXPECT_THAT(doctor.out, HasSubstr("is renewed for the next task after that"));
  EXPECT_TRUE(endpoint.Log().empty()) << "doctor asks nobody";

  Onlooker onlooker;
  const Outcome run = Taskcell({"run", "a1", "Do it.", "--json"}, provider.Url());
  const auto [told, saw_launcher] = onlooker.Stop();
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_EQ(Json::parse(run.out)["reply"], "secret 0, placeholder there");
  EXPECT_TRUE(saw_launcher) << "control: the onlooker looked";
  EXPECT_EQ(told, std::set<std::string>());

  ASSERT_EQ(provider.Log().size(), 1U);
  EXPECT_TRUE(provider.Log()[0].authorized);
  EXPECT_EQ(provider.Log()[0].All("authorization"),
            std::vector<std::string>{Text("Bearer ", kRenewed)});
  EXPECT_THAT(provider.Log()[0].All("anthropic-beta").at(0), HasSubstr("oauth-2025-04-20"));
  ASSERT_EQ(endpoint.Log().size(), 1U);

  const std::string document = ReadText(At("home/login/doc.json"));
  EXPECT_THAT(document, HasSubstr("refresh-1"));
  EXPECT_FALSE(fs::exists(At("home/login/doc.json.previous"))) << "the provider took it";
  for (std::string_view secret : {std::string_view("refresh-"), kRenewed}) {
    EXPECT_EQ(FilesWith(secret), std::set<std::string>());
    EXPECT_EQ((run.out + run.err).find(secret), std::string::npos);
  }

  // The next one finds it renewed.
  const Outcome again = Taskcell({"run", "a1", "Do it.", "--json"}, provider.Url());
  EXPECT_EQ(again.status, 0) << again.out << again.err;
  EXPECT_EQ(endpoint.Log().size(), 1U);
}

TEST_F(LoginTaskTest, ALoginThatIsOverRestsWithItsReasonAndTheNextAccountIsTried) {
  gateway::ProviderProcess provider = MakeProvider({{"steps", Json::array()}, {"reply", "x"}});
  TokenEndpointProcess endpoint(path_, certificate_);
  ASSERT_TRUE(provider.IsUp() && endpoint.IsUp());
  PutConfig(endpoint.Url("/over"));
  const Outcome alone = Taskcell({"run", "a1", "Do it.", "--json"}, provider.Url());
  const Json answer = Json::parse(alone.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << alone.out << alone.err;
  EXPECT_EQ(answer["code"], "auth_failed") << answer;
  EXPECT_THAT(answer["message"].get<std::string>(),
              HasSubstr("account `person`: its login could not be renewed: it says that the login "
                        "is over (400 invalid_grant)"));
  EXPECT_TRUE(provider.Log().empty());
  EXPECT_THAT(Taskcell({"doctor"}, provider.Url()).out, HasSubstr("authentication failed, until"));
  EXPECT_EQ(endpoint.Log().size(), 1U);

  fs::remove(At("home/taskcell.db"));
  PutConfig(endpoint.Url("/over"),
            "[[accounts]]\nid = \"spare\"\napi_key = \"secret://env/SPARE_KEY\"\n");
  const Outcome other = Taskcell({"run", "a1", "Do it.", "--json"}, provider.Url());
  EXPECT_EQ(other.status, 0) << other.out << other.err;
  EXPECT_EQ(Json::parse(other.out)["receipt"]["account"], "spare") << other.out;
}

TEST_F(LoginTaskTest, WhereNobodySaysHowToRenewItAnEndedLoginIsNoAccountAndALastingOneIsUsed) {
  gateway::ProviderProcess provider("sk-ended-access-token", "hello");
  ASSERT_TRUE(provider.IsUp());
  PutConfig("");
  const Outcome ended = Taskcell({"run", "a1", "Do it.", "--json"}, provider.Url());
  const Json answer = Json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << ended.out << ended.err;
  EXPECT_EQ(answer["code"], "no_account");
  EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr("[taskcell.oauth.anthropic]"));
  PutDocument(3600);
  const Outcome lasting = Taskcell({"run", "a1", "Do it.", "--json"}, provider.Url());
  EXPECT_EQ(lasting.status, 0) << lasting.out << lasting.err;
}

}  // namespace
}  // namespace taskcell::test
