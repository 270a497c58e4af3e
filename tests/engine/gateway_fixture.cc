#include "tests/engine/gateway_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {

namespace fs = std::filesystem;

void GatewayFixture::SetUp() {
  TaskFixture::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  GiveHomeToUser();
}

void GatewayFixture::TearDown() {
  gateway_.reset();
  if (HasFailure()) GTEST_LOG_(INFO) << "the gateway said:\n" << ReadText(At("gateway.out"));
  TaskFixture::TearDown();
}

RunOptions GatewayFixture::AsUser(const std::string& provider_url) const {
  RunOptions options;
  options.user = user_;
  options.environment = {Text("OPENAI_API_KEY=", kKey), "OPENAI_BASE_URL=" + provider_url,
                         "DOCKER_HOST=unix://" + socket_};
  return options;
}

std::vector<std::string> GatewayFixture::GatewayCommand() const {
  return {Program("taskcell-gateway"), "--home", Home()};
}

void GatewayFixture::StartGateway(const std::string& url, const std::vector<std::string>& options,
                                  const std::vector<std::string>& environment) {
  std::vector<std::string> argv = GatewayCommand();
  argv.insert(argv.end(), options.begin(), options.end());
  RunOptions run = AsUser(url);
  run.environment.insert(run.environment.end(), environment.begin(), environment.end());
  gateway_ = std::make_unique<Background>(argv, run, At("gateway.out"));
  AwaitService([this] { return gateway_->Wait({}).has_value(); });
}

// The socket is there a little before anybody answers at it.
void GatewayFixture::AwaitService(const std::function<bool()>& has_ended) const {
  ASSERT_TRUE(WaitFor([&] { return IsServed() || has_ended(); }));
  ASSERT_TRUE(IsServed()) << ReadText(At("gateway.out"));
  ASSERT_EQ(Api("/v1/status")["accepting"], true);
}

// By a descriptor, since the path may be longer than an address.
bool GatewayFixture::IsServed() const {
  const UniqueFd home(::open(Home().c_str(), O_PATH | O_CLOEXEC));
  return sys::ConnectUnix(Text("/proc/self/fd/", home.get(), "/taskcell.sock"), SOCK_STREAM).ok();
}

std::optional<int> GatewayFixture::StopGateway() {
  gateway_->Signal(SIGTERM);
  return gateway_->Wait(std::chrono::minutes(1));
}

void GatewayFixture::KillGateway() {
  gateway_->Signal(SIGKILL);
  ASSERT_EQ(gateway_->Wait(std::chrono::minutes(1)), 128 + SIGKILL);
}

Outcome GatewayFixture::Client(std::vector<std::string> words) const {
  words.insert(words.begin(), Program("taskcell"));
  words.insert(words.begin() + 2, {"--home", Home()});
  return test::Run(words, AsUser());
}

GatewayFixture::Json GatewayFixture::ClientJson(std::vector<std::string> words) const {
  words.emplace_back("--json");
  const Outcome outcome = Client(words);
  EXPECT_EQ(outcome.status, 0) << words[0] << ": " << outcome.err;
  Json json = Json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << words[0] << ": " << outcome.out;
  return json;
}

std::string GatewayFixture::Submit(const std::string& prompt, const std::string& agent) const {
  const Outcome outcome = Client({"submit", agent, prompt, "--path", "bus"});
  return outcome.status == 0 ? std::string(Trim(outcome.out)) : "";
}

std::string GatewayFixture::StateOf(const std::string& id) const { return Show(id)["state"]; }

bool GatewayFixture::IsIdle() const {
  for (const Json& task : Tasks())
    if (task["state"] == "accepted" || task["state"] == "running") return false;
  return true;
}

Outcome GatewayFixture::Curl(const std::string& target, std::vector<std::string> options) const {
  std::vector<std::string> argv = {"curl", "-s", "-m", "20", "--unix-socket", "taskcell.sock"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back("http://gateway" + target);
  RunOptions run = AsUser();
  run.directory = Home();
  return test::Run(argv, run);
}

GatewayFixture::Json GatewayFixture::Api(const std::string& target,
                                         std::vector<std::string> options) const {
  const Outcome outcome = Curl(target, std::move(options));
  EXPECT_EQ(outcome.status, 0) << target << ": " << outcome.err;
  return Json::parse(outcome.out, nullptr, false);
}

int GatewayFixture::Conversations(const gateway::ProviderProcess& provider,
                                  const std::string& prompt) {
  int begun = 0;
  for (const gateway::LoggedRequest& request : provider.Log()) {
    const bool is_first = request.body.find("\"role\":\"tool\"") == std::string::npos;
    if (is_first && request.body.find(prompt) != std::string::npos) ++begun;
  }
  return begun;
}

void GatewayFixture::Admit(const FakeEngine& engine) {
  ASSERT_EQ(::chmod(fs::path(engine.socket_path()).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(engine.socket_path().c_str(), 0666), 0);
}

GatewayFixture::Json GatewayFixture::SweepLater() const {
  constexpr std::time_t kLater = 720;
  const Outcome swept = test::Run({Program("taskcell-casedriver"), "sweep", "--home", Home(),
                                   "--now", std::to_string(std::time(nullptr) + kLater)},
                                  AsUser());
  EXPECT_EQ(swept.status, 0) << swept.out << swept.err;
  return Json::parse(swept.out, nullptr, false);
}

void GatewayFixture::ExpectTidy() const {
  const fs::path sandbox = fs::path(Home()) / "sandbox";
  if (fs::exists(sandbox / "runs")) {
    EXPECT_TRUE(fs::is_empty(sandbox / "runs"));
  }
  if (fs::exists(sandbox / "receipts")) {
    for (const fs::directory_entry& receipt : fs::directory_iterator(sandbox / "receipts"))
      EXPECT_TRUE(Json::accept(ReadText(receipt.path()))) << receipt.path();
  }
  const std::string audit = ReadText(Home() + "/security_audit.jsonl");
  for (std::string_view line : Split(audit, '\n'))
    EXPECT_TRUE(line.empty() || Json::accept(line)) << line;
  EXPECT_TRUE(audit.empty() || audit.ends_with('\n')) << audit;
  (void)Exports();
}

std::size_t GatewayFixture::Exports() const {
  const fs::path exports = fs::path(Home()) / "exports";
  if (!fs::exists(exports)) return 0;
  std::size_t count = 0;
  for (const fs::directory_entry& run : fs::directory_iterator(exports)) {
    const Json manifest = Json::parse(ReadText(run.path() / "manifest.json"), nullptr, false);
    EXPECT_TRUE(manifest.is_object()) << run.path() << " is half an export";
    if (!manifest.is_object()) continue;
    for (const Json& file : manifest["files"])
      EXPECT_EQ(ReadText(run.path() / "files" / file["path"].get<std::string>()).size(),
                file["bytes"].get<std::size_t>());
    ++count;
  }
  return count;
}

}  // namespace taskcell::test
