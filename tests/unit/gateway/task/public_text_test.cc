// What whoever asked for a task is told, and what only the operator is.
#include "gateway/task/public_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/task/engine_fault.h"
#include "probe/cells/docker_engine.h"
#include "tests/unit/gateway/task/run_task_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSocket[] = "/run/user/1500/podman/podman.sock";
constexpr char kEnginesWords[] = "OCI runtime error: crun: open `/home/alice/x`: No such file";

struct Row {
  const char* code;
  std::string text;
  const char* told;
};

TEST(PublicTextTest, AFixedTextIsToldWithTheFirstCauseThatIsKnown) {
  const std::string engine = Text("engine at unix://", kSocket, " (from CONTAINER_HOST): ");
  for (const Row& row : {
           Row{"docker_unreachable", engine + "GET /info: HTTP 500: " + kEnginesWords,
               "Docker is not reachable (is the Docker daemon running?)"},
           Row{"docker_unreachable",
               engine + "connect: Permission denied; this user may not use the socket: let it run",
               "Docker is not reachable (is the Docker daemon running?); this user may not use the "
               "socket: let it run `docker version` first (group docker)"},
           Row{"docker_unreachable",
               "the engine can't share a socket with this host: the process 7 it says",
               "Docker is not reachable (is the Docker daemon running?); the engine can't share a "
               "socket with this host: one in a virtual machine, on another host or with a kernel "
               "of its own cannot be used"},
           Row{"image_missing",
               "the sandbox image is not on this machine; run `docker pull x:1` (it is never "
               "pulled automatically): " +
                   engine,
               "the sandbox image is not on this machine; run `docker pull x:1` (it is never "
               "pulled automatically)"},
           Row{"image_missing",
               NameMissingImage(Error(Kind::kConfig, Text("no; ", probe::kOtherStore, kSocket))
                                    .Coded("image_missing"),
                                "x:1")
                   .text,
               "the sandbox image is not on this machine; run `docker pull x:1` as the gateway's "
               "user at its own engine, or `taskcell image pull`: that runs rootless, and root's "
               "store is another one (it is never pulled automatically)"},
           Row{"container_create_failed", engine + kEnginesWords,
               "the sandbox container could not be created (docker create failed)"},
           Row{"container_create_failed", engine + "[container.sandbox] lies, change it",
               "the sandbox container could not be created (docker create failed)"},
           Row{"container_create_failed",
               "[container.sandbox] pids = 1 is not what this engine can set, change it: " + engine,
               "the sandbox container could not be created (docker create failed); "
               "[container.sandbox] pids = 1 is not what this engine can set, change it"},
           Row{"container_refused",
               "sandbox container refused: the gateway runs as root (uid or gid 0): uid 5, gid 0; "
               "run it as a normal user",
               "sandbox container refused: the gateway runs as root (uid or gid 0): uid 5, gid 0; "
               "run it as a normal user"},
           Row{"cell_mismatch", "the cell is not what was planned (mount /home/alice); nothing",
               "the cell is not what was planned, so nothing ran in it"},
           Row{"workspace_failed", "mkdir '/home/alice/sandbox': No space left on device",
               "the sandbox workspace could not be created; there is no room on the disk"},
           Row{"agent_dir_unmountable", "open '/home/alice/agents/a1': Too many links",
               "the agent directory cannot be mounted"},
           Row{"transport_failed", kEnginesWords, "the sandbox run failed before the CLI finished"},
           Row{"", "open '/home/alice/x'", "a fault of the gateway ended the task"},
           Row{"no_account", "no account can run `claude`", "no account can run `claude`"},
       })
    EXPECT_EQ(PublicText(Error(Kind::kSystem, row.text).Coded(row.code)), row.told) << row.text;
}

using AnswerWordsTest = RunTaskTest;

TEST_F(AnswerWordsTest, NoWordOfAnEngineAndNoPathOfTheHostIsInAReply) {
  for (const char* code :
       {"docker_unreachable", "engine_unsupported", "image_missing", "container_create_failed",
        "container_refused", "cell_mismatch", "workspace_failed", "agent_dir_unmountable",
        "resource_limits_unenforced", "transport_failed", ""}) {
    state_.make_error = Error(Kind::kSystem, Text(kSocket, ": ", kEnginesWords)).Coded(code);
    std::filesystem::remove_all(path_ + "/logs");
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, *code == '\0' ? "internal_error" : code);
    for (const std::string& told : {DelegationReply(answer), answer.message, AuditLog()}) {
      EXPECT_THAT(told, Not(HasSubstr("crun"))) << code;
      EXPECT_THAT(told, Not(HasSubstr("/home/alice"))) << code;
      EXPECT_THAT(told, Not(HasSubstr("podman.sock"))) << code;
    }
    EXPECT_THAT(answer.detail, HasSubstr(kEnginesWords)) << code;
    EXPECT_THAT(Log(), HasSubstr("crun: open")) << code;
  }
}

}  // namespace
}  // namespace taskcell::gateway
