// A script and an engine that is told what to do: what is asked in which order, what a refusal
// says, which events stand in the log, and what the hatch lets onto the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "gateway/ledger/ledger.h"
#include "gateway/script/plan_script.h"
#include "gateway/script/poc.h"
#include "gateway/script/script.h"
#include "gateway/script/settings.h"
#include "launcher/sys/socket.h"
#include "probe/cells/docker_engine.h"
#include "tests/unit/gateway/task/host_fixture.h"
#include "tests/unit/gateway/task/waiting_cell.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTime = "2026-10-02T08:15:30.123456+00:00";
constexpr char kOpen[] = "script_when_unavailable = \"run_unsandboxed\"\n";

class RunScriptTest : public HostTaskTest {
 protected:
  void SetUp() override {
    HostTaskTest::SetUp();
    request_.home = path_;
    request_.agent = "worker";
    request_.language = ScriptLanguage::kBash;
    request_.code = Text("touch ", path_, "/ran\necho from the host\n");
    Section("");
  }

  void Section(std::string_view keys) const {
    Put("config.toml", Text("[container.sandbox]\nimage = \"img:1\"\n", keys));
  }
  void FailAt(std::string at, std::string_view code) {
    state_.fail_at = std::move(at);
    state_.code = code;
  }
  ScriptAnswer RunIt() { return RunScript(request_, surroundings_); }
  bool RanOnHost() const { return std::filesystem::exists(path_ + "/ran"); }
  // The audit log with every time replaced by the same.
  std::string Lines() const {
    std::string log = AuditLog();
    constexpr std::string_view kKey = "{\"timestamp\":\"";
    for (std::size_t at = log.find(kKey); at != std::string::npos; at = log.find(kKey, at + 1))
      log.replace(at + kKey.size(), kTime.size(), kTime);
    return log;
  }
  void ForgetLog() const { std::filesystem::remove(path_ + "/security_audit.jsonl"); }

  // An engine whose cell attests, changed by `change`, and whose first process then does `rest`.
  void MakeCells(const std::function<void(cell::CellPlan&)>& change,
                 const std::function<void(cell::FrameWriter&, int gate)>& rest) {
    state_.make_cell = [this, change, rest](const cell::CellPlan& plan) {
      sys::SocketPair pair = sys::MakePacketPair().value();
      cell::CellPlan other = plan;
      change(other);
      first_ = std::thread([other, rest, gate = std::move(pair.first)] {
        cell::FrameWriter writer;
        cell::Attestation whole = cell::MatchingAttestation(other, cell::Engine::kDocker);
        const std::string seen = cell::EncodeAttestation(whole.inside);
        Status sent = writer.Write(
            cell::FrameType::kAttestation, seen,
            [&](std::string_view packet) { return sys::SendPacket(gate.get(), packet, -1); });
        EXPECT_TRUE(sent.ok());
        rest(writer, gate.get());
      });
      return std::make_unique<WaitingCell>(plan, std::move(pair.second), [] {});
    };
  }
  void TearDown() override {
    if (first_.joinable()) first_.join();
    HostTaskTest::TearDown();
  }

  ScriptRequest request_;
  std::thread first_;  // the first process of the one cell made
};

struct Refusal {
  const char* at;  // the engine's step, or "config"
  std::string_view engine_code;
  const char* code;
  const char* part;  // of the message
};
constexpr Refusal kRefusals[] = {
    {"config", "", "invalid_config",
     "config.toml [container.sandbox] is invalid: [container.sandbox] pids must be a positive "
     "integer"},
    {"reach", "docker_unreachable", "runtime_unhealthy",
     "the container runtime is not reachable: told to fail"},
    {"reach", "engine_unsupported", "runtime_unhealthy",
     "the container runtime is not reachable: told to fail"},
    {"image", "image_missing", "image_missing", "the sandbox image img:1 is not present locally"},
    {"image", "docker_unreachable", "runtime_unhealthy",
     "the container runtime is not reachable: told to fail"},
    {"ids", "container_refused", "create_failed",
     "the container could not be created: told to fail"},
    {"make", "container_create_failed", "create_failed",
     "the container could not be created: told to fail"},
    {"make", "container_start_failed", "start_failed",
     "the container could not be started: told to fail"},
    {"make", "resource_limits_unenforced", "create_failed",
     "the container could not be created: told to fail"},
};

TEST_F(RunScriptTest, EachRefusalHasItsCodeItsMessageAndItsEventAndRunsNothing) {
  for (const Refusal& refusal : kRefusals) {
    ForgetLog();
    const bool config = std::string_view(refusal.at) == "config";
    Section(config ? "pids = 0\n" : "");
    FailAt(refusal.at, refusal.engine_code);
    const std::set<std::string> before = Tree();
    const ScriptAnswer answer = RunIt();
    EXPECT_EQ(answer.code, refusal.code) << refusal.at;
    EXPECT_THAT(answer.message,
                HasSubstr(Text("Script sandbox unavailable (", refusal.code, "): ", refusal.part)));
    EXPECT_THAT(answer.message, HasSubstr(". The script was not run. "));
    if (!config) {
      EXPECT_THAT(answer.message, HasSubstr("run `docker pull img:1`"));
    }
    EXPECT_EQ(Lines(),
              Text("{\"timestamp\":\"", kTime, "\",\"event_type\":\"script_sandbox_unavailable\",",
                   "\"agent_id\":\"worker\",\"severity\":\"warning\",\"details\":{\"language\":",
                   "\"bash\",\"reason\":\"", refusal.code,
                   "\",\"script_when_unavailable\":\"fail\"}}\n"));
    EXPECT_EQ(Tree(), before) << "a refusal leaves nothing: " << refusal.at;
    EXPECT_EQ(ScriptExitStatus(answer), 125);
  }
  EXPECT_FALSE(RanOnHost());
}

TEST_F(RunScriptTest, WithItsHatchOpenEachRunsOnTheHostEveryTimeWithBothEvents) {
  for (const Refusal& refusal : kRefusals) {
    const bool config = std::string_view(refusal.at) == "config";
    Section(Text(config ? "pids = 0\n" : "", kOpen));
    FailAt(refusal.at, refusal.engine_code);
    for (int turn = 0; turn < 2; ++turn) {
      ForgetLog();
      const ScriptAnswer answer = RunIt();
      EXPECT_EQ(answer.code, "ok") << refusal.at << answer.message;
      EXPECT_EQ(answer.out, "from the host\n");
      EXPECT_TRUE(answer.ran_on_host);
      EXPECT_EQ(
          Lines(),
          Text("{\"timestamp\":\"", kTime, "\",\"event_type\":\"script_sandbox_unavailable\",",
               "\"agent_id\":\"worker\",\"severity\":\"warning\",\"details\":{\"language\":",
               "\"bash\",\"reason\":\"", refusal.code,
               "\",\"script_when_unavailable\":\"run_unsandboxed\"}}\n", "{\"timestamp\":\"", kTime,
               "\",\"event_type\":\"script_sandbox_bypassed\",\"agent_id\":\"worker\",",
               "\"severity\":\"warning\",\"details\":{\"language\":\"bash\",\"reason\":\"",
               refusal.code, "\"}}\n"));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + "/sandbox")) << "nothing is left of a host run";
}

TEST_F(RunScriptTest, TheTasksHatchOpensNothingForScripts) {
  Section("pids = 0\nwhen_unavailable = \"run_unsandboxed\"\n");
  EXPECT_EQ(RunIt().code, "invalid_config");
  EXPECT_FALSE(RanOnHost());
}

TEST_F(RunScriptTest, AnyOtherValueOfTheHatchMeansFail) {
  for (const char* value : {"\"fail\"", "\"RUN_UNSANDBOXED\"", "true", "1", "\"\""}) {
    Section(Text("pids = 0\nscript_when_unavailable = ", value, "\n"));
    EXPECT_EQ(RunIt().code, "invalid_config") << value;
  }
  Put("config.toml", Text("not TOML\n", kOpen));
  EXPECT_EQ(RunIt().code, "invalid_config");
  EXPECT_FALSE(RanOnHost());
}

TEST_F(RunScriptTest, OnTheHostTheEnvironmentIsClearedButForWhatIsNamed) {
  Section(Text("pids = 0\n", kOpen));
  surroundings_.environment["SECRET_KEY"] = "do not hand on";
  surroundings_.environment["HOME"] = "/some/home";
  surroundings_.environment["LANG"] = "C.UTF-8";
  request_.code = "env | grep -v -e ^_= -e ^SHLVL= -e ^PWD= -e ^PATH= | sort";
  const ScriptAnswer answer = RunIt();
  EXPECT_EQ(answer.out, "HOME=/some/home\nLANG=C.UTF-8\nPYTHONUNBUFFERED=1\n") << answer.message;
}

TEST_F(RunScriptTest, OnTheHostItEndsAtItsTimeLimitWithAllThatItStarted) {
  Section(Text("pids = 0\n", kOpen));
  request_.timeout_ms = 1000;
  request_.code = Text("sleep 600 & echo $! >", path_, "/pid; echo before; wait");
  const ScriptAnswer answer = RunIt();
  EXPECT_EQ(answer.exit_code, 124) << answer.message;
  EXPECT_TRUE(answer.timed_out);
  EXPECT_EQ(answer.err, "Script execution timed out");
  EXPECT_EQ(answer.out, "before\n") << "what it had said is not lost";
  const std::string pid(Trim(ReadHome("pid")));
  EXPECT_FALSE(std::filesystem::exists("/proc/" + pid));
}

TEST_F(RunScriptTest, RootRunsNothingOnTheHost) {
  Section(Text("pids = 0\n", kOpen));
  surroundings_.effective_uid = 0;
  const ScriptAnswer answer = RunIt();
  EXPECT_EQ(answer.code, "invalid_config");
  EXPECT_FALSE(RanOnHost());
  EXPECT_EQ(Events(), std::vector<std::string>{"script_sandbox_unavailable"});
}

TEST_F(RunScriptTest, WithoutItsEventsNothingRunsOnTheHost) {
  Section(Text("pids = 0\n", kOpen));
  std::filesystem::create_directory(path_ + "/security_audit.jsonl");
  EXPECT_EQ(RunIt().code, "invalid_config");
  EXPECT_FALSE(RanOnHost());
}

TEST_F(RunScriptTest, WithOnlyTheFirstOfItsEventsNothingRunsOnTheHostEither) {
  Section(Text("pids = 0\n", kOpen));
  ASSERT_EQ(RunIt().code, "ok");
  const std::string both = AuditLog();
  const std::size_t first = both.find('\n') + 1;
  std::filesystem::remove(path_ + "/ran");
  auto run = [this](std::size_t room, std::string_view code, int exit_status) {
    const int status = WithRoomInAuditLog(room, [&] {
      const ScriptAnswer answer = RunIt();
      EXPECT_EQ(answer.code, code) << room;
      EXPECT_EQ(ScriptExitStatus(answer), exit_status) << room;
      if (exit_status != 0) {
        EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("audit log: "))) << room;
        EXPECT_THAT(
            answer.warnings,
            testing::Contains(HasSubstr("does not apply: the audit log cannot be written")));
      }
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(status, 0) << room;
    EXPECT_EQ(RanOnHost(), exit_status == 0) << room;
  };
  run(first - 1, "invalid_config", 125);
  EXPECT_EQ(Events(), std::vector<std::string>());
  run(first, "invalid_config", 125);
  EXPECT_EQ(Events(), std::vector<std::string>{"script_sandbox_unavailable"});
  run(both.size(), "ok", 0);
  EXPECT_EQ(Events().size(), 2U) << "control";
}

TEST_F(RunScriptTest, AProofOfConceptHasNoHatchAndNoEvents) {
  for (const Refusal& refusal : kRefusals) {
    const bool config = std::string_view(refusal.at) == "config";
    Section(Text(config ? "pids = 0\n" : "", "when_unavailable = \"run_unsandboxed\"\n", kOpen));
    FailAt(refusal.at, refusal.engine_code);
    const PocEvidence evidence = RunPoc(request_, surroundings_);
    EXPECT_EQ(evidence.kind, "poc_skipped");
    EXPECT_EQ(evidence.detail.rfind(Text("sandbox unavailable: ", refusal.part), 0), 0U)
        << evidence.detail;
    const bool names_pull =
        evidence.detail.find("; run `docker pull img:1` (") != std::string::npos;
    EXPECT_EQ(names_pull, std::string_view(refusal.code) == "image_missing") << evidence.detail;
  }
  EXPECT_FALSE(RanOnHost());
  EXPECT_EQ(AuditLog(), "");
}

TEST_F(RunScriptTest, AProofOfConceptThatTakesTooLongHasItsLimitAsEvidence) {
  request_.timeout_ms = 1000;
  MakeCells([](cell::CellPlan&) {},
            [](cell::FrameWriter&, int gate) {
              std::vector<char> packet(cell::kMaxFrameBytes);
              for (auto type = cell::FrameType::kJob; type != cell::FrameType::kCancel;) {
                auto received = sys::ReceivePacket(gate, packet, false);
                ASSERT_TRUE(received.ok()) << received.error().text;
                auto frame = cell::ParseFrame({packet.data(), received->size});
                ASSERT_TRUE(frame.ok()) << frame.error().text;
                type = frame->type;
              }
            });
  const PocEvidence evidence = RunPoc(request_, surroundings_);
  EXPECT_EQ(evidence.kind, "poc_skipped");
  EXPECT_EQ(evidence.detail,
            "sandbox unavailable: container execution exceeded the 1s hard timeout");
}

TEST_F(RunScriptTest, TheEngineIsAskedInOrderAndNotBeforeTheConfigurationIsRight) {
  Section("pids = 0\n");
  (void)RunIt();
  EXPECT_EQ(state_.calls, std::vector<std::string>{});
  Section("");
  (void)RunIt();
  EXPECT_EQ(state_.calls,
            (std::vector<std::string>{"make_engine", "reach", "image", "ids", "make"}));
  state_.calls.clear();
  state_.rootless = true;
  FailAt("make", "container_create_failed");
  (void)RunIt();
  EXPECT_EQ(state_.calls[3], "limits") << "a rootless engine proves its limits first";
}

TEST_F(RunScriptTest, TheImageIsReadAfreshForEachScript) {
  FailAt("image", "image_missing");
  EXPECT_THAT(RunIt().message, HasSubstr("docker pull img:1"));
  Put("config.toml", "[container.sandbox]\nimage = \"img:2\"\n");
  EXPECT_THAT(RunIt().message, HasSubstr("docker pull img:2"));
  Put("config.toml", "");
  EXPECT_THAT(RunIt().message, HasSubstr("docker pull ghcr.io/zhixuli0406/duduclaw:v"));
}

TEST_F(RunScriptTest, OfARootlessEngineItIsSaidThatRootsStoreIsAnotherOne) {
  state_.make_error =
      Error(Kind::kConfig, Text("no such image; ", probe::kOtherStore)).Coded("image_missing");
  const ScriptAnswer answer = RunIt();
  EXPECT_THAT(answer.message, testing::EndsWith("(it is never pulled automatically)."));
  EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("by `taskcell image pull`")));
  EXPECT_THAT(RunPoc(request_, surroundings_).detail, HasSubstr("by `taskcell image pull`"));
  state_.make_error = Error(Kind::kConfig, "no such image").Coded("image_missing");
  EXPECT_THAT(RunIt().warnings, testing::IsEmpty()) << "control: where root's store is the one";
}

TEST_F(RunScriptTest, ItsCellHasNoNetworkTheScriptAloneAndLimitsOfItsOwn) {
  Section("memory_bytes = 1073741824\npids = 7\ncpu_millis = 100\n");
  (void)RunIt();
  ASSERT_TRUE(state_.plan.has_value());
  const cell::CellPlan& plan = *state_.plan;
  EXPECT_EQ(plan.network, cell::NetworkMode::kNone);
  EXPECT_EQ(cell::ListenerCount(plan), 0U);
  EXPECT_EQ(plan.root_source, "img:1");
  EXPECT_EQ(plan.limits.memory_bytes, uint64_t{2} << 30U);
  EXPECT_EQ(plan.limits.pids, 256U);
  EXPECT_EQ(plan.limits.cpu_millis, 1000U);
  ASSERT_EQ(plan.mounts.size(), 1U);
  EXPECT_EQ(plan.mounts[0].target, "/workspace");
  EXPECT_FALSE(plan.mounts[0].writable);
  ASSERT_EQ(plan.tmpfs.size(), 1U);
  EXPECT_EQ(plan.tmpfs[0].target, "/tmp");
  EXPECT_EQ(plan.tmpfs[0].size_bytes, uint64_t{64} << 20U);
  EXPECT_FALSE(plan.tmpfs[0].exec);
  EXPECT_EQ(plan.working_directory, "/tmp");
  const cell::Job job = PlanScriptJob(request_);
  EXPECT_EQ(job.argv, (std::vector<std::string>{"bash", "/workspace/script.sh"}));
  EXPECT_EQ(job.working_directory, "/tmp");
}

TEST_F(RunScriptTest, ACellThatIsNotAsPlannedRunsNothingAndOpensNoHatch) {
  Section(kOpen);
  MakeCells([](cell::CellPlan& plan) { plan.limits.pids += 1; }, [](cell::FrameWriter&, int) {});
  const ScriptAnswer answer = RunIt();
  EXPECT_EQ(answer.code, "start_failed") << answer.message;
  EXPECT_THAT(answer.message, HasSubstr("its limits are not in force"));
  EXPECT_FALSE(answer.verified);
  EXPECT_FALSE(RanOnHost());
  EXPECT_EQ(Events(), std::vector<std::string>{"script_sandbox_unavailable"});
  EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("a cell of its own was made")));
}

TEST_F(RunScriptTest, AnInterpreterThatIsNotThereIsNamedAndOpensNoHatch) {
  Section(kOpen);
  MakeCells([](cell::CellPlan&) {},
            [](cell::FrameWriter& writer, int gate) {
              ASSERT_TRUE(sys::Poll(gate, POLLIN, 20000).ok());  // the job
              Status sent = writer.Write(
                  cell::FrameType::kRefused,
                  cell::EncodeRefusal({"exec", ENOENT, "no such program"}),
                  [&](std::string_view packet) { return sys::SendPacket(gate, packet, -1); });
              EXPECT_TRUE(sent.ok());
              ASSERT_TRUE(sys::Poll(gate, POLLHUP, 20000).ok());
            });
  const ScriptAnswer answer = RunIt();
  EXPECT_EQ(answer.code, "start_failed") << answer.message;
  EXPECT_THAT(answer.message, HasSubstr("`bash` cannot be started in the image `img:1` (no such "
                                        "program); install it there"));
  EXPECT_TRUE(answer.verified);
  EXPECT_FALSE(RanOnHost());
}

TEST_F(RunScriptTest, ARunOnAnEngineStandsInTheLedgerWhileItLasts) {
  bool known = false;
  MakeCells([](cell::CellPlan&) {}, [](cell::FrameWriter&, int) {});
  auto make = state_.make_cell;
  state_.make_cell = [&](const cell::CellPlan& plan) {
    UniqueFd home = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
    known = Ledger::Open(home.get(), path_)->HasRun(plan.run_id).value();
    return make(plan);
  };
  (void)RunIt();
  EXPECT_TRUE(known) << "a sweep must know the container";
  UniqueFd home = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
  EXPECT_FALSE(Ledger::Open(home.get(), path_)->HasRun(state_.plan->run_id).value());
}

TEST_F(RunScriptTest, ARunWhoseContainerMayBeThereStaysInTheLedgerForTheSweep) {
  auto stays = [this](Kind kind, std::string_view code) {
    state_.make_error = Error(kind, "told to fail; and left behind: perhaps").Coded(code);
    (void)RunIt();
    UniqueFd home = sys::Open(path_, O_RDONLY | O_DIRECTORY).value();
    return Ledger::Open(home.get(), path_)->HasRun(state_.plan->run_id).value();
  };
  for (const char* code :
       {"docker_unreachable", "stopped", "container_start_failed", "cell_mismatch"})
    EXPECT_TRUE(stays(Kind::kSystem, code)) << code;
  EXPECT_TRUE(stays(Kind::kViolation, "container_create_failed")) << "its answer made no sense";
  for (const char* code : {"container_refused", "image_missing", "container_create_failed"})
    EXPECT_FALSE(stays(Kind::kSystem, code)) << code;
}

TEST_F(RunScriptTest, WhatNoScriptCanBeIsRefusedBeforeAnything) {
  auto refused = [this](ScriptRequest request) {
    EXPECT_EQ(RunScript(request, surroundings_).code, "invalid_script");
  };
  ScriptRequest request = request_;
  request.code.assign(kMaxScriptBytes + 1, ' ');
  refused(request);
  request = request_;
  request.input.assign(kMaxScriptInputBytes + 1, ' ');
  refused(request);
  for (uint64_t timeout : {uint64_t{0}, kMaxScriptSeconds * 1000 + 1}) {
    request = request_;
    request.timeout_ms = timeout;
    refused(request);
  }
  request = request_;
  request.agent = "../x";
  refused(request);
  EXPECT_EQ(state_.calls, std::vector<std::string>{});
  EXPECT_EQ(AuditLog(), "") << "the sandbox had no part in it";
}

TEST_F(RunScriptTest, ACallerWhoIsGoneEndsItWithoutAnEvent) {
  sys::Pipe gone = sys::MakePipe().value();
  gone.write_end.Reset();
  surroundings_.cancel_fd = gone.read_end.get();
  Section(kOpen);
  const ScriptAnswer answer = RunIt();
  EXPECT_EQ(answer.code, "stopped") << answer.message;
  EXPECT_EQ(ScriptExitStatus(answer), 130);
  EXPECT_EQ(AuditLog(), "");
  EXPECT_FALSE(RanOnHost());
}

}  // namespace
}  // namespace taskcell::gateway
