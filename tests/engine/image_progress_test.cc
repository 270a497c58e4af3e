// What `taskcell image pull` shows of a pull while it goes on, by an engine of the test's own.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "tests/engine/task_fixture.h"
#include "tests/support/fake_engine.h"
#include "tests/support/on_terminal.h"

namespace taskcell::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// As Docker tells of a pull: the tag is where a layer's id is elsewhere.
constexpr char kBegin[] = R"({"status":"Pulling from taskcell/sample","id":"good"}
{"status":"Pulling fs layer","id":"l1"}
{"status":"Pulling fs layer","id":"l2"}
{"status":"Downloading","progressDetail":{"current":1048576,"total":4194304},"id":"l1"}
{"status":"Downloading","progressDetail":{"current":3145728,"total":4194304},"id":"l1"}
)";
constexpr char kEnd[] = R"({"status":"Already exists","id":"l2"}
{"status":"Pull complete","id":"l1"}
{"status":"Digest: sha256:bb"}
)";
constexpr char kErase[] = "\r\x1b[K";

class PullProgressTest : public TaskFixture {
 protected:
  // An engine that tells this of a pull, named in the configuration.
  void MakeEngine(const std::string& lines) {
    struct utsname host = {};
    ASSERT_EQ(::uname(&host), 0);
    const std::string image =
        Text(R"({"Id":"sha256:aa","RepoDigests":["taskcell/sample@sha256:bb"],"Architecture":")",
             std::string(host.machine) == "x86_64" ? "amd64" : "arm64", "\"}");
    engine_ = std::make_unique<FakeEngine>([lines, image](const FakeEngine::Request& request) {
      auto asks_for = [&request](const char* what) {
        return request.target.find(what) != std::string::npos;
      };
      if (asks_for("/images/create")) return FakeEngine::Answer(200, lines);
      if (asks_for("/images/")) return FakeEngine::Answer(200, image);
      if (asks_for("/containers/json")) return FakeEngine::Answer(200, "[]");
      return FakeEngine::Answer(200, R"({"ServerVersion":"20.10"})");
    });
    const std::string& socket = engine_->socket_path();
    ASSERT_EQ(::chmod(std::filesystem::path(socket).parent_path().c_str(), 0755), 0);
    ASSERT_EQ(::chmod(socket.c_str(), 0666), 0);
    Put("config.toml", Text("[taskcell]\nengine = \"docker\"\nengine_socket = \"", socket,
                            "\"\n[container.sandbox]\nimage = \"taskcell/sample:good\"\n"));
    GiveHomeToUser();
  }

  std::vector<std::string> Pull() const {
    return {Program("taskcell"), "image", "pull", "--home", path_ + "/home"};
  }

  // All that a pull writes at a terminal, and its exit status.
  std::string ScreenOfPull(int status) {
    OnTerminal terminal(Pull(), [user = *user_] {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
          ::setresuid(user.uid, user.uid, user.uid) != 0)
        ::_exit(126);
    });
    const std::string screen = terminal.WholeScreen();
    EXPECT_EQ(terminal.Wait(), status) << screen;
    return screen;
  }

  // The states of the line that changes.
  static std::vector<std::string> Drawn(std::string_view screen) {
    std::vector<std::string> drawn;
    for (std::size_t at = screen.find(kErase); at != screen.npos; at = screen.find(kErase, at)) {
      at += sizeof kErase - 1;
      const std::string_view rest = screen.substr(at);
      const std::string_view text = rest.substr(0, rest.find_first_of("\r\n"));
      if (text.find(" layers, ") != text.npos) drawn.emplace_back(text);
    }
    return drawn;
  }

  // What stands there in the end.
  static std::string Left(std::string_view screen) {
    std::string left;
    for (std::string_view line : Split(screen, '\n')) {
      const std::size_t erased = line.rfind(kErase);
      if (erased != line.npos) line.remove_prefix(erased + sizeof kErase - 1);
      left += Text(Trim(line), "\n");
    }
    return left;
  }

  std::unique_ptr<FakeEngine> engine_;
};

TEST_F(PullProgressTest, AtATerminalOneLineChangesAndIsGoneInTheEnd) {
  MakeEngine(Text(kBegin, kEnd));
  const std::string screen = ScreenOfPull(0);
  EXPECT_THAT(Drawn(screen), ElementsAre("0 of 1 layers, 0 of 0 MiB", "0 of 2 layers, 0 of 0 MiB",
                                         "0 of 2 layers, 1 of 4 MiB", "0 of 2 layers, 3 of 4 MiB",
                                         "1 of 2 layers, 3 of 4 MiB", "2 of 2 layers, 4 of 4 MiB"))
      << screen;
  const std::string left = Left(screen);
  EXPECT_THAT(left, HasSubstr("good: Pulling from taskcell/sample\n"));
  EXPECT_THAT(left, HasSubstr("Digest: sha256:bb\ntaskcell/sample:good is now in the store of "));
  EXPECT_THAT(left, Not(HasSubstr("MiB")));
}

TEST_F(PullProgressTest, AtATerminalTheLineIsGoneBeforeAFailureIsTold) {
  MakeEngine(Text(kBegin, R"({"error":"no space left on device"})", "\n"));
  const std::string screen = ScreenOfPull(1);
  EXPECT_EQ(Drawn(screen).size(), 4U) << screen;
  const std::string left = Left(screen);
  EXPECT_THAT(left, HasSubstr("pull_failed: "));
  EXPECT_THAT(left, HasSubstr("no space left on device"));
  EXPECT_THAT(left, Not(HasSubstr("MiB")));
}

TEST_F(PullProgressTest, ElsewhereEachStepOfALayerIsALine) {
  MakeEngine(Text(kBegin, kEnd));
  RunOptions run;
  run.user = user_;
  const Outcome pull = test::Run(Pull(), run);
  EXPECT_EQ(pull.status, 0) << pull.err;
  std::vector<std::string> lines;
  for (std::string_view line : Split(pull.err, '\n'))
    if (!line.empty()) lines.emplace_back(line.substr(line.find(": ") + 2));
  EXPECT_THAT(lines, ElementsAre("good: Pulling from taskcell/sample", "l1: Pulling fs layer",
                                 "l2: Pulling fs layer", "l1: Downloading", "l2: Already exists",
                                 "l1: Pull complete", "Digest: sha256:bb"));
}

}  // namespace
}  // namespace taskcell::test
