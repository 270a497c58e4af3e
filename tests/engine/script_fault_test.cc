// What goes wrong around scripts in native cells and on this host: each refusal with its code, its
// message and its events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/engine/script_fixture.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ScriptFaultTest : public ScriptFixture {
 protected:
  void Docker(std::string_view keys) const {
    Put("config.toml", Text("[taskcell]\nengine = \"docker\"\nengine_socket = \"", At("no.sock"),
                            "\"\n[container.sandbox]\nimage = \"img:1\"\n", keys));
  }
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    std::ifstream log(Home() + "/security_audit.jsonl");
    for (std::string line; std::getline(log, line);)
      events.push_back(Json::parse(line)["event_type"]);
    return events;
  }
};

TEST_F(ScriptFaultTest, WithoutAnEngineNothingRunsAndTheMessageNamesThePull) {
  Docker("");
  const Outcome run = RunIt("bash", Text("touch ", At("home/ran")));
  EXPECT_EQ(run.status, 125);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err,
              HasSubstr("Script sandbox unavailable (no_runtime): no container runtime: "));
  EXPECT_THAT(run.err, HasSubstr(". The script was not run. The script sandbox needs a running "
                                 "Docker and the image img:1 present locally; run `docker pull "
                                 "img:1` (it is never pulled automatically)."));
  EXPECT_EQ(Events(), std::vector<std::string>{"script_sandbox_unavailable"});
  EXPECT_FALSE(fs::exists(At("home/ran")));
  EXPECT_FALSE(fs::exists(At("home/sandbox")));
}

TEST_F(ScriptFaultTest, WithItsHatchOpenItRunsOnTheHostAndIsAuditedEachTime) {
  Docker("script_when_unavailable = \"run_unsandboxed\"\n");
  for (int turn = 1; turn <= 2; ++turn) {
    const Outcome run = RunIt("bash", "echo \"$PYTHONUNBUFFERED $DOCKER_HOST\"; id -u; exit 4");
    EXPECT_EQ(run.status, 4) << run.err;
    EXPECT_EQ(run.out, Text("1 \n", user_->uid, "\n"));
    EXPECT_THAT(run.err, HasSubstr("the script ran on the host, without isolation"));
    EXPECT_EQ(Events().size(), 2U * static_cast<std::size_t>(turn));
  }
  EXPECT_EQ(Events()[1], "script_sandbox_bypassed");
}

TEST_F(ScriptFaultTest, AProofOfConceptIsLeftOutThoughEveryHatchIsOpen) {
  Docker("script_when_unavailable = \"run_unsandboxed\"\nwhen_unavailable = \"run_unsandboxed\"\n");
  const Outcome run = RunIt("bash", Text("touch ", At("home/ran")), {"--poc"});
  EXPECT_EQ(run.status, 125);
  EXPECT_EQ(run.out.rfind("poc_skipped: sandbox unavailable: no container runtime: ", 0), 0U)
      << run.out;
  EXPECT_FALSE(fs::exists(At("home/ran")));
  EXPECT_TRUE(Events().empty());
}

TEST_F(ScriptFaultTest, WithoutUserNamespacesThereIsNoNativeRuntime) {
  GiveHomeToUser();
  RunOptions run = AsUser();
  run.input = "true";
  run.in_child = [enter = run.in_child] {
    constexpr uint32_t kFlags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD | SIGCHLD;
    enter();
    if (!InstallFaults({{SYS_clone3, ENOSYS}, {SYS_clone, EPERM, 0, kFlags}})) ::_exit(90);
  };
  const Outcome outcome = test::Run(Command({"script", "--language", "bash", "--json"}), run);
  const Json answer = Json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << outcome.out << outcome.err;
  EXPECT_EQ(answer["code"], "no_runtime") << answer;
  EXPECT_THAT(answer["message"].get<std::string>(),
              HasSubstr("something refuses this step to you"));
}

TEST_F(ScriptFaultTest, AnInterpreterThatTheRootLacksIsNamed) {
  const Outcome made = test::Run({"bash", MAKE_SMALL_ROOT, At("root")});
  ASSERT_EQ(made.status, 0) << made.err;
  Put("config.toml",
      Text("[taskcell]\nengine = \"native\"\nroot = \"", At("root"), "\"\n[container.sandbox]\n",
           "script_when_unavailable = \"run_unsandboxed\"\n"));
  EXPECT_EQ(RunIt("bash", "echo here").out, "here\n") << "control: this one it has";
  const Json answer = RunJson("python", "print(1)");
  EXPECT_EQ(answer["code"], "start_failed") << answer;
  EXPECT_THAT(
      answer["message"].get<std::string>(),
      HasSubstr(Text("`python3` cannot be started in the root directory `", At("root"), "` (")));
  EXPECT_EQ(answer["ran_on_host"], false) << "its cell was made: no hatch";
}

TEST_F(ScriptFaultTest, AWrongSectionIsNamedByItsKey) {
  Configure("pids_limit = 3\n");
  const Json answer = RunJson("bash", "true");
  EXPECT_EQ(answer["code"], "invalid_config");
  EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr("`pids_limit`"));
  EXPECT_THAT(answer["message"].get<std::string>(),
              HasSubstr("The script was not run. Fix the [container.sandbox] section of "
                        "config.toml."));
}

TEST_F(ScriptFaultTest, WhatIsWrongOnTheCommandLineIsToldWithStatusTwo) {
  GiveHomeToUser();
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"script"}, "--language is required"},
      {{"script", "--language", "perl"}, "Unsupported language: 'perl'"},
      {{"script", "--language", "bash", "--timeout-seconds", "301"}, "301"},
      {{"script", "--language", "bash", "--timeout-seconds", "0"}, "0"},
      {{"script", "--language", "bash", "--stdin", "-"}, "both come from standard input"},
      {{"script", "--language", "bash", "/nonexistent"}, "/nonexistent"},
      {{"script", "--language", "bash", "/"}, "the script"},
      {{"script", "--language", "javascript", "--poc"}, "a python or bash script"},
      {{"script", "--language", "bash", "--agent", "../x"}, "is no agent's name"},
      {{"script", "--language", "bash", "--poc", "--timeout-seconds", "5"}, "--poc"},
  };
  for (const auto& [words, part] : rows) {
    const Outcome run = Client(words, "true");
    EXPECT_EQ(run.status, 2) << part << run.out << run.err;
    EXPECT_THAT(run.err, HasSubstr(part));
  }
}

TEST_F(ScriptFaultTest, RootRunsNoScript) {
  RunOptions as_root;
  as_root.input = "true";
  const Outcome run = test::Run(Command({"script", "--language", "bash", "--json"}), as_root);
  EXPECT_EQ(Json::parse(run.out)["code"], "create_failed") << run.out;
}

}  // namespace
}  // namespace taskcell::test
