// `taskcell script` and `taskcell mcp` from end to end: a real engine and real cells. Runs on
// each engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/engine/script_fixture.h"
#include "tests/engine/task_engine.h"
#include "tests/support/background.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ScriptTest : public ScriptFixture {};

TEST_F(ScriptTest, EachLanguageRunsInAVerifiedCellWithItsStreamsApart) {
  const Outcome bash = RunIt("bash", "echo out; echo err >&2; exit 3");
  EXPECT_EQ(bash.status, 3) << bash.err;
  EXPECT_EQ(bash.out, "out\n");
  EXPECT_EQ(bash.err, "err\n");
  const Json python =
      RunJson("python", "import sys\nprint(sys.argv[0])\nprint('e', file=sys.stderr)");
  EXPECT_EQ(python["code"], "ok") << python;
  EXPECT_EQ(python["stdout"], "/workspace/script.py\n");
  EXPECT_EQ(python["stderr"], "e\n");
  EXPECT_EQ(python["exit_code"], 0);
  EXPECT_EQ(python["tool_calls_count"], 0);
  EXPECT_EQ(python["cell"]["verified"], true);
  EXPECT_EQ(python["ran_on_host"], false);
  EXPECT_EQ(RunJson("bash", "kill -9 $$")["exit_code"], 137);
}

TEST_F(ScriptTest, JavascriptRunsWhereTheRootHasNodeAndIsRefusedByNameElsewhere) {
  const Json answer = RunJson("javascript", "console.log(6 * 7)");
  const bool has_node = !OnDocker() && fs::exists("/usr/bin/node");
  if (has_node) {
    EXPECT_EQ(answer["stdout"], "42\n") << answer;
    return;
  }
  EXPECT_EQ(answer["code"], "start_failed") << answer;
  EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr("`node` cannot be started in the"));
}

TEST_F(ScriptTest, ItReadsWhatItIsGivenOnStandardInputElseNothing) {
  EXPECT_EQ(RunIt("bash", "cat").out, "");
  Put("input.txt", "given\n");
  GiveHomeToUser();
  const Outcome run =
      Client({"script", "--language", "bash", "--stdin", Home() + "/input.txt"}, "cat; echo after");
  EXPECT_EQ(run.out, "given\nafter\n") << run.err;
}

TEST_F(ScriptTest, ItHasNoNetworkNoAgentDirectoryAndAReadOnlyRoot) {
  Put("agents/a1/SOUL.md", "canary-of-the-agent");
  const Json answer = RunJson("bash", R"(
cat /proc/net/dev | grep -c :
{ exec 3<>/dev/tcp/127.0.0.1/80; } 2>/dev/null && echo connected
{ echo x >/workspace/x; } 2>/dev/null && echo wrote to its own directory
{ echo x >/usr/x; } 2>/dev/null && echo wrote to the root
[ -e /agent/SOUL.md ] && echo sees the agent
echo '#!/bin/bash' >/tmp/x; chmod +x /tmp/x; /tmp/x 2>/dev/null && echo executed from tmp
env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort
pwd
echo $((UID > 0))
)");
  EXPECT_EQ(answer["stdout"],
            "1\nHOME=/tmp\nLANG=C.UTF-8\n"
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
            "PYTHONUNBUFFERED=1\n/tmp\n1\n")
      << answer;
}

TEST_F(ScriptTest, ItsOwnLimitsAreInForceWhateverTheSectionSaysOfTasks) {
  const Json answer = RunJson("python", R"(
import os
print(os.statvfs('/tmp').f_blocks * os.statvfs('/tmp').f_frsize)
pids = []
try:
    for _ in range(400):
        pids.append(os.posix_spawn('/usr/bin/sleep', ['sleep', '60'], {}))
except OSError as error:
    print(error.errno)
print(250 < len(pids) < 256)
)",
                              {"--timeout-seconds", "300"});
  EXPECT_EQ(answer["stdout"], "67108864\n11\nTrue\n") << answer;
  EXPECT_THAT(answer["warnings"].dump(), HasSubstr("the process limit (256) was reached"));
  const Json memory = RunJson("python", "b = bytearray(3 << 30)\nprint('not reached')",
                              {"--timeout-seconds", "300"});
  EXPECT_EQ(memory["exit_code"], 137) << memory;
  EXPECT_EQ(memory["stdout"], "");
}

TEST_F(ScriptTest, AtItsTimeLimitAllOfItEnds) {
  const std::string mark = Mark();
  const Json answer =
      RunJson("bash",
              Text("trap '' TERM INT HUP; echo before; setsid bash -c 'trap \"\" TERM; sleep ",
                   mark, "' & sleep ", mark),
              {"--timeout-seconds", "2"});
  EXPECT_EQ(answer["exit_code"], 124) << answer;
  EXPECT_EQ(answer["timed_out"], true);
  EXPECT_EQ(answer["stderr"], "PTC container execution timed out");
  EXPECT_EQ(answer["stdout"], "before\n");
  EXPECT_EQ(answer["code"], "ok");
  EXPECT_FALSE(IsRunning(mark));
  EXPECT_EQ(RunIt("bash", "sleep 60", {"--timeout-seconds", "1"}).status, 124);
}

TEST_F(ScriptTest, AForkBombStaysInItsCellAndEnds) {
  const std::string mark = Mark();
  const Json answer = RunJson("bash", Text("f() { sleep ", mark, " & f | f & }; f; sleep 30"),
                              {"--timeout-seconds", "5"});
  EXPECT_EQ(answer["exit_code"], 124) << answer;
  EXPECT_FALSE(IsRunning(mark));
}

TEST_F(ScriptTest, AFloodOfOutputIsBoundedAndEnded) {
  const Json cut = RunJson("python", "import sys\nsys.stdout.write('x' * (3 << 20))\nsys.exit(5)");
  EXPECT_EQ(cut["exit_code"], 5) << "it runs to its own end";
  EXPECT_EQ(cut["truncated"], true);
  EXPECT_EQ(cut["stdout"].get<std::string>().size(),
            (1U << 20U) + std::string_view("\n...[truncated]").size());
  const Json flood = RunJson("python", "import sys\nwhile True: sys.stderr.write('x' * 65536)");
  EXPECT_EQ(flood["code"], "output_overflow") << flood["message"];
}

TEST_F(ScriptTest, BytesThatAreNoTextDoNoHarm) {
  const Json out = RunJson("bash", R"(printf 'a\xff\xfe\0z')");
  EXPECT_EQ(out["stdout"], std::string("a\xEF\xBF\xBD\xEF\xBF\xBD\0z", 9)) << out;
  EXPECT_EQ(RunIt("bash", "echo \xff\xfe").status, 0) << "in the script itself";
  const Json nul = RunJson("python", std::string("print(1)\0", 9));
  EXPECT_EQ(nul["code"], "ok") << "what its interpreter makes of it is the script's matter: "
                               << nul;
  EXPECT_EQ(RunJson("bash", "")["exit_code"], 0) << "an empty one";
}

TEST_F(ScriptTest, AScriptOfTheMostBytesRunsAndOneByteMoreIsRefused) {
  constexpr std::size_t kMost = 4U << 20U;
  std::string code = "echo whole; exit #";
  code.resize(kMost, '#');
  EXPECT_EQ(RunIt("bash", code).out, "whole\n");
  const Outcome refused = RunIt("bash", code + "#");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("the script has more than 4194304 bytes"));
}

TEST_F(ScriptTest, ACallerThatIsKilledLeavesNothingForLongerThanASweep) {
  const std::string mark = Mark();
  Put("script.sh", Text("sleep ", mark));
  GiveHomeToUser();
  {
    Background caller(Command({"script", "--language", "bash", Home() + "/script.sh"}), AsUser(),
                      At("caller.log"));
    ASSERT_TRUE(WaitFor([&] { return IsRunning(mark); })) << ReadText(At("caller.log"));
    caller.Signal(SIGKILL);
    ASSERT_EQ(caller.Wait(std::chrono::seconds(20)), 137);
  }
  EXPECT_TRUE(WaitFor([&] { return !IsRunning(mark); }));
  const Json swept = SweepLater();
  EXPECT_EQ(swept["directories"].size(), 1U) << swept;
  EXPECT_TRUE(swept["failures"].empty()) << swept;
  EXPECT_TRUE(fs::is_empty(Home() + "/sandbox/runs"));
  EXPECT_TRUE(WaitFor([this] { return Containers() == 0; }));
}

TEST_F(ScriptTest, ASignalToItsCallerEndsItAtOnce) {
  const std::string mark = Mark();
  Put("script.sh", Text("sleep ", mark));
  GiveHomeToUser();
  Background caller(Command({"script", "--language", "bash", Home() + "/script.sh"}), AsUser(),
                    At("caller.log"));
  ASSERT_TRUE(WaitFor([&] { return IsRunning(mark); })) << ReadText(At("caller.log"));
  caller.Signal(SIGTERM);
  EXPECT_EQ(caller.Wait(std::chrono::seconds(20)), 130);
  EXPECT_FALSE(IsRunning(mark));
}

TEST_F(ScriptTest, NothingIsLeftOfScriptsThatEnded) {
  for (const char* code : {"true", "exit 7", "kill -9 $$"}) (void)RunIt("bash", code);
  EXPECT_TRUE(fs::is_empty(Home() + "/sandbox/runs"));
  EXPECT_EQ(Containers(), 0);
  EXPECT_FALSE(fs::exists(Home() + "/security_audit.jsonl"));
  EXPECT_FALSE(fs::exists(Home() + "/sandbox/receipts"));
}

TEST_F(ScriptTest, AProofOfConceptIsEvidenceCutAndMasked) {
  const std::string secret = "sk-0123456789abcdef0123456789";
  const Outcome run =
      RunIt("bash", Text("echo ", secret, "; head -c 9000 /dev/zero | tr '\\0' x"), {"--poc"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(
      run.out.rfind("poc_transcript: exit_code=0\n--- script (bash) ---\necho <redacted>; ", 0), 0U)
      << run.out.substr(0, 200);
  constexpr std::string_view kOutput = "\n--- output ---\n";
  const std::size_t at = run.out.find(kOutput);
  ASSERT_NE(at, std::string::npos) << run.out.substr(0, 200);
  const std::string output = run.out.substr(at + kOutput.size());
  EXPECT_EQ(output.rfind("<redacted>\n", 0), 0U) << output.substr(0, 200);
  EXPECT_EQ(output.size(), 4001U) << "with the end of its line";
  EXPECT_THAT(output, testing::EndsWith("x\n...[truncated]\n"));
  EXPECT_EQ(run.out.find(secret), std::string::npos);
}

TEST_F(ScriptTest, AClientOfTheProtocolIsServedAndItsScriptsEndWithIt) {
  GiveHomeToUser();
  auto call = [](int id, std::string_view code, int seconds) {
    const Json message = {
        {"jsonrpc", "2.0"},
        {"id", id},
        {"method", "tools/call"},
        {"params",
         {{"name", "execute_program"},
          {"arguments", {{"language", "bash"}, {"code", code}, {"timeout_seconds", seconds}}}}}};
    return message.dump() + "\n";
  };
  // A client that closes its end early still gets what it asked for.
  const Outcome run =
      Client({"mcp"}, Text(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{}})", "\n",
                           call(1, "echo one", 30), "no JSON\n",
                           call(2, "echo two >&2; exit 9", 30), call(3, "sleep 60", 1)));
  EXPECT_EQ(run.status, 0) << run.err;
  std::map<int, Json> answers;
  for (std::string_view line : Split(run.out, '\n')) {
    if (line.empty()) continue;
    const Json answer = Json::parse(line);
    if (answer["id"].is_number()) answers[answer["id"]] = answer;
  }
  EXPECT_EQ(answers[1]["result"]["content"][0]["text"], "one\n") << run.out;
  EXPECT_EQ(answers[1]["result"]["isError"], false);
  EXPECT_EQ(answers[2]["result"]["content"][0]["text"],
            "Program exited with code 9\n--- stdout ---\n\n--- stderr ---\ntwo\n");
  EXPECT_EQ(answers[2]["result"]["isError"], true);
  EXPECT_EQ(answers[3]["result"]["content"][0]["text"],
            "Program exited with code 124\n--- stdout ---\n\n--- stderr ---\nPTC container "
            "execution timed out");
  // One that is gone takes its scripts with it.
  const std::string mark = Mark();
  Put("call.json", call(1, "sleep " + mark, 300));
  GiveHomeToUser();
  Background gone({"bash", "-c",
                   Text("cat ", Home(), "/call.json | ", ShellWord(Program("taskcell")),
                        " mcp --home ", Home(), " | sleep 1000")},
                  AsUser(), At("gone.log"));
  ASSERT_TRUE(WaitFor([&] { return IsRunning(mark); })) << ReadText(At("gone.log"));
  EndPipeReader(gone.pid());
  EXPECT_TRUE(WaitFor([&] { return !IsRunning(mark); }));
  EXPECT_TRUE(WaitFor([this] { return fs::is_empty(Home() + "/sandbox/runs"); }));
}

TEST_F(ScriptTest, ACallThatIsCancelledEndsAndIsNotAnswered) {
  const std::string mark = Mark();
  const std::string script =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_program",)"
      R"("arguments":{"language":"bash","timeout_seconds":300,"code":"sleep )" +
      mark + R"("}}})";
  const std::string cancel =
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})";
  Put("call.json", script + "\n");
  Put("cancel.json", cancel + "\n");
  GiveHomeToUser();
  Background client(
      {"bash", "-c",
       Text("{ cat ", Home(), "/call.json; until [ -e ", At("go"), " ]; do sleep 0.1; done; cat ",
            Home(), "/cancel.json; } | ", ShellWord(Program("taskcell")), " mcp --home ", Home())},
      AsUser(), At("client.log"));
  ASSERT_TRUE(WaitFor([&] { return IsRunning(mark); })) << ReadText(At("client.log"));
  std::ofstream(At("go")) << "";
  EXPECT_EQ(client.Wait(std::chrono::seconds(60)), 0);
  EXPECT_EQ(ReadText(At("client.log")), "");
  EXPECT_FALSE(IsRunning(mark));
}

}  // namespace
}  // namespace taskcell::test
