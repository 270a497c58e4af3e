#include "tests/engine/script_fixture.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>

#include "launcher/base/text.h"
#include "tests/engine/task_engine.h"
#include "tests/support/engine_proxy.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

std::string& MadeImage() {
  static std::string image;
  return image;
}

std::string CommandLineOf(const fs::path& process) { return ReadText(process / "cmdline"); }

}  // namespace

// Once for all tests: what each would bring is the same, and takes its time.
void ScriptFixture::SetUpTestSuite() {
  const std::string socket = OnDocker() ? DockerSocket() : "";
  if (socket.empty()) return;
  const std::string image = Text("taskcell-script-test:", ::getpid());
  const Outcome made = test::Run({"python3", SCRIPT_IMAGE_PATH, socket, image});
  ASSERT_EQ(made.status, 0) << made.err;
  MadeImage() = image;
}

void ScriptFixture::SetUp() {
  TaskFixture::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  Configure();
}

void ScriptFixture::TearDownTestSuite() {
  if (MadeImage().empty()) return;
  (void)ForwardToEngine(DockerSocket(), {"DELETE", "/images/" + MadeImage() + "?force=1", ""});
  MadeImage().clear();
}

void ScriptFixture::Configure(std::string_view more) const {
  Put("config.toml", Text("[taskcell]\nengine = \"", kTaskEngine, "\"\n[container.sandbox]\n",
                          OnDocker() ? Text("image = \"", MadeImage(), "\"\n") : "",
                          "memory_bytes = 134217728\ntmp_bytes = 16777216\n"
                          "workspace_bytes = 16777216\npids = 40\ncpu_millis = 700\n",
                          more));
}

RunOptions ScriptFixture::AsUser() const {
  RunOptions options;
  options.user = user_;
  options.environment = {"DOCKER_HOST=unix://" + socket_};
  options.timeout_ms = 100000;
  options.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
  return options;
}

std::vector<std::string> ScriptFixture::Command(std::vector<std::string> words) const {
  words.insert(words.begin(), Program("taskcell"));
  words.insert(words.end(), {"--home", Home()});
  return words;
}

Outcome ScriptFixture::Client(std::vector<std::string> words, std::string_view input,
                              const std::vector<std::string>& environment) const {
  RunOptions run = AsUser();
  run.input = input;
  run.environment.insert(run.environment.end(), environment.begin(), environment.end());
  return test::Run(Command(std::move(words)), run);
}

Outcome ScriptFixture::RunIt(const std::string& language, std::string_view code,
                             std::vector<std::string> options) const {
  GiveHomeToUser();
  std::vector<std::string> words = {"script", "--language", language};
  words.insert(words.end(), options.begin(), options.end());
  return Client(std::move(words), code);
}

ScriptFixture::Json ScriptFixture::RunJson(const std::string& language, std::string_view code,
                                           std::vector<std::string> options) const {
  options.emplace_back("--json");
  const Outcome run = RunIt(language, code, std::move(options));
  const Json answer = Json::parse(run.out, nullptr, false);
  EXPECT_TRUE(answer.is_object()) << run.out << run.err;
  return answer;
}

std::string ScriptFixture::Mark() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return Text("900.", static_cast<uint64_t>(now));
}

bool ScriptFixture::IsRunning(const std::string& mark) {
  const std::string argument = Text("sleep", '\0', mark, '\0');
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (!ParseUnsigned(entry.path().filename().string()).has_value()) continue;
    if (CommandLineOf(entry.path()).ends_with(argument)) return true;
  }
  return false;
}

int ScriptFixture::Containers() const {
  if (!OnDocker()) return 0;
  const Outcome listed =
      test::Run({"curl", "-fsS", "--unix-socket", socket_, "http://engine/containers/json?all=1"});
  EXPECT_EQ(listed.status, 0) << listed.err;
  int count = 0;  // by the label: the image is named by its digest
  for (const Json& container : Json::parse(listed.out))
    if (container["Labels"].contains("com.duduclaw.task-sandbox.run")) ++count;
  return count;
}

ScriptFixture::Json ScriptFixture::SweepLater() const {
  constexpr std::time_t kLater = 3600;  // past every deadline of these tests
  const Outcome swept = test::Run({Program("taskcell-casedriver"), "sweep", "--home", Home(),
                                   "--now", std::to_string(std::time(nullptr) + kLater)},
                                  AsUser());
  EXPECT_EQ(swept.status, 0) << swept.out << swept.err;
  return Json::parse(swept.out, nullptr, false);
}

void ScriptFixture::EndPipeReader(pid_t shell) {
  const std::string path = Text("/proc/", shell, "/task/", shell, "/children");
  const std::string children = ReadText(path);
  for (std::string_view word : Words(children)) {
    const std::optional<uint64_t> pid = ParseUnsigned(word);
    if (!pid.has_value()) continue;
    if (CommandLineOf(Text("/proc/", *pid)).starts_with(std::string("sleep\0", 6)))
      (void)::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
}

}  // namespace taskcell::test
