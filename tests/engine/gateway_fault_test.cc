// taskcell-gateway when the world around it fails: no room on the disk, a clock that jumps, a
// configuration that changes or is broken, a home at the end of a long path.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

class GatewayFaultTest : public GatewayFixture {
 protected:
  // A provider whose AI works for a second before it answers, so that there is a middle.
  gateway::ProviderProcess MakeSlowProvider() const {
    return MakeProvider(
        {{"steps", {{{"do", "shell"}, {"command", "sleep 1"}}}}, {"reply", "the reply"}});
  }
  bool IsBegun(const gateway::ProviderProcess& provider, const std::string& prompt) const {
    return WaitFor([&] { return Conversations(provider, prompt) == 1; });
  }
  bool IsState(const std::string& id, const std::string& state) const {
    return WaitFor([&] { return StateOf(id) == state; });
  }
  std::string ReplyOf(const std::string& id) const {
    const Json reply = Api("/v1/tasks/" + id)["answer"]["reply"];
    return reply.is_string() ? reply.get<std::string>() : "";
  }
  void ExpectDoneOnce(const gateway::ProviderProcess& provider, const std::string& id,
                      const std::string& prompt) const {
    EXPECT_TRUE(IsState(id, "done")) << Show(id);
    EXPECT_EQ(ReplyOf(id), "the reply");
    EXPECT_EQ(Conversations(provider, prompt), 1) << prompt;
  }

  // A client that has a script run and waits for it.
  Background Script(const std::string& code, int seconds, const std::string& output) const {
    const Json request = {{"language", "bash"}, {"code", code}, {"timeout_seconds", seconds}};
    RunOptions run = AsUser();
    run.directory = Home();
    return Background({"curl", "-s", "--unix-socket", "taskcell.sock", "-d", request.dump(),
                       "http://gateway/v1/scripts"},
                      run, At(output));
  }
  static bool IsRunning(const std::string& command) {
    return WaitFor([&] { return test::Run({"pgrep", "-xf", command}).status == 0; });
  }
  // A home at the end of a path of 250 bytes.
  void MoveHomeDeep() {
    std::string deep = path_ + "/home";
    while (deep.size() < 250)
      deep += Text("/", std::string(std::min<std::size_t>(60, 249 - deep.size()), 'd'));
    ASSERT_EQ(deep.size(), 250U);
    fs::create_directories(deep);
    for (const char* name : {"config.toml", "agents"})
      fs::rename(Text(path_, "/home/", name), Text(deep, "/", name));
    GiveHomeToUser();
    home_ = deep;
  }
};

// ---- No room.

class GatewayDiskTest : public GatewayFaultTest {
 protected:
  void SetUp() override {
    GatewayFaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    home_ = At("small");
    ASSERT_EQ(::mkdir(home_.c_str(), 0700), 0);
    ASSERT_EQ(::mount("none", home_.c_str(), "tmpfs", 0, "size=4m,mode=0700"), 0);
    const Outcome copied = test::Run({"cp", "-a", path_ + "/home/.", home_});
    ASSERT_EQ(copied.status, 0) << copied.err;
  }
  void TearDown() override {
    gateway_.reset();
    if (!home_.empty()) {
      EXPECT_EQ(::umount(home_.c_str()), 0) << "somebody still uses it";
      home_.clear();
    }
    GatewayFaultTest::TearDown();
  }

  // Down to the last byte.
  void Fill() const {
    const UniqueFd file(::open((home_ + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::array<char, 65536> block = {};
    for (std::size_t size = block.size(); size > 0; size /= 2)
      while (::write(file.get(), block.data(), size) > 0) {
      }
    ASSERT_EQ(::write(file.get(), block.data(), 1), -1) << "control: it is full";
  }
  void MakeRoom() const { EXPECT_TRUE(fs::remove(home_ + "/filler")); }
};

TEST_F(GatewayDiskTest, WhatCannotBeKeptIsNotTakenInAndTheNextIs) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  Fill();
  // What the ledger had room for already may still hold a task or two.
  Outcome refused;
  std::size_t taken = 0;
  do {
    refused = Client({"submit", "a1", "no room for it", "--path", "bus"});
  } while (refused.status == 0 && ++taken < 50);
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("workspace_failed: the sandbox workspace could not be created; there "
                             "is no room on the disk"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("detail: taskcell.db: database or disk is full"), std::string::npos)
      << refused.err;
  EXPECT_EQ(Tasks().size(), taken);
  MakeRoom();
  EXPECT_TRUE(WaitFor([this] { return IsIdle(); }));
  const std::string id = Submit("room for it");
  ExpectDoneOnce(provider, id, "\"room for it");
  EXPECT_EQ(Tasks().size(), taken + 1);
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

TEST_F(GatewayDiskTest, ATaskThatRunsMeanwhileIsAnsweredAndEnteredOnceThereIsRoom) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  Background client({Program("taskcell"), "submit", "a1", "the question", "--path", "bus", "--wait",
                     "--home", Home()},
                    AsUser(), At("client.out"));
  ASSERT_TRUE(IsBegun(provider, "the question"));
  Fill();
  EXPECT_EQ(client.Wait(std::chrono::minutes(1)), 0) << ReadText(At("client.out"));
  EXPECT_NE(ReadText(At("client.out")).find("the reply"), std::string::npos);
  const Json tasks = Tasks();
  ASSERT_EQ(tasks.size(), 1U);
  MakeRoom();
  ExpectDoneOnce(provider, tasks[0]["id"], "the question");
  const std::string next = Submit("another one");
  ExpectDoneOnce(provider, next, "another one");
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

TEST_F(GatewayDiskTest, AGatewayKilledThereIsRecoveredOnceThereIsRoom) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/mode/hang/v1"));
  const std::string id = Submit("the question");
  ASSERT_TRUE(IsBegun(provider, "the question"));
  KillGateway();
  Fill();
  Background stuck(GatewayCommand(), AsUser(provider.Url("/v1")), At("gateway.out"));
  const std::optional<int> status = stuck.Wait(std::chrono::seconds(2));
  if (status.has_value()) {
    EXPECT_EQ(status, 1);
    EXPECT_NE(ReadText(At("gateway.out")).find("disk is full"), std::string::npos);
  }
  stuck.Signal(SIGKILL);
  (void)stuck.Wait(std::chrono::minutes(1));
  MakeRoom();
  StartGateway(provider.Url("/v1"));
  EXPECT_TRUE(IsState(id, "interrupted"));
  EXPECT_EQ(Conversations(provider, "the question"), 1);
  ExpectDoneOnce(provider, Submit("another one"), "another one");
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_TRUE(SweepLater()["failures"].empty());
  ExpectTidy();
}

TEST_F(GatewayDiskTest, AScriptIsNotRunWithoutRoomAndTheNextIs) {
  StartGateway("http://127.0.0.1:9/v1");
  auto run = [this] {
    return Api("/v1/scripts", {"-d", R"({"language": "bash", "code": "echo out"})"});
  };
  Fill();
  const Json refused = run();
  EXPECT_EQ(refused["code"], "workspace_failed") << refused;
  EXPECT_EQ(refused["stdout"], "") << refused;
  EXPECT_EQ(refused["ran_on_host"], false) << refused;
  MakeRoom();
  EXPECT_EQ(run()["stdout"], "out\n");
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

// ---- A clock that jumps.

class GatewayClockTest : public GatewayFaultTest, public testing::WithParamInterface<long> {
 protected:
  void Shift(long seconds) const {
    std::array<char, sizeof seconds> bytes;
    std::memcpy(bytes.data(), &seconds, sizeof seconds);
    std::fstream(At("shift"), std::ios::in | std::ios::out | std::ios::binary)
        .write(bytes.data(), bytes.size());
  }
  void StartShifted(const std::string& url) {
    std::ofstream(At("shift"), std::ios::binary) << std::string(sizeof(long), '\0');
    fs::copy_file(SHIFTED_CLOCK_PATH, At("clock.so"));
    for (const char* name : {"shift", "clock.so"}) fs::permissions(At(name), fs::perms(0755));
    StartGateway(url, {}, {"LD_PRELOAD=" + At("clock.so"), "SHIFTED_CLOCK=" + At("shift")});
  }
};

TEST_P(GatewayClockTest, TasksThatRunAndWaitGoOnAndNewOnesCome) {
  const std::string config = ReadText(Home() + "/config.toml");
  Put("config.toml", "[taskcell]\nmax_concurrent = 1\n" + config.substr(config.find('\n') + 1));
  GiveHomeToUser();
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartShifted(provider.Url("/v1"));
  const std::string running = Submit("the first");
  const std::string waiting = Submit("the second");
  ASSERT_TRUE(IsBegun(provider, "the first"));
  Shift(GetParam());
  const std::string later = Submit("the third");
  EXPECT_TRUE(SweepLater()["directories"].empty()) << "it is in use";
  ExpectDoneOnce(provider, running, "the first");
  ExpectDoneOnce(provider, waiting, "the second");
  ExpectDoneOnce(provider, later, "the third");
  const int64_t apart = Show(later)["accepted_ms"].get<int64_t>() -
                        Show(waiting)["accepted_ms"].get<int64_t>() - GetParam() * 1000;
  EXPECT_LT(std::abs(apart), 60000) << "control: its clock did jump";
  Shift(0);
  ExpectDoneOnce(provider, Submit("the fourth"), "the fourth");
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

INSTANTIATE_TEST_SUITE_P(ByADay, GatewayClockTest, testing::Values(86400, -86400),
                         [](const auto& shift) { return shift.param > 0 ? "Forward" : "Back"; });

TEST_P(GatewayClockTest, ScriptsThatRunGoOnAndEndAtTheirOwnLimits) {
  StartShifted("http://127.0.0.1:9/v1");
  const std::string short_one = Text("sleep 3.", ::getpid());
  const std::string long_one = Text("sleep 900.", ::getpid());
  // What it writes wakes the gateway, which then looks at its clock.
  Background whole = Script(short_one + "; echo one; sleep 1; echo two", 300, "whole.out");
  Background late = Script(long_one, 3, "late.out");
  ASSERT_TRUE(IsRunning(short_one) && IsRunning(long_one));
  Shift(GetParam());
  EXPECT_TRUE(SweepLater()["directories"].empty()) << "they are in use";
  for (Background* caller : {&whole, &late}) EXPECT_EQ(caller->Wait(std::chrono::minutes(1)), 0);
  const Json kept = Json::parse(ReadText(At("whole.out")), nullptr, false);
  EXPECT_EQ(kept["stdout"], "one\ntwo\n") << kept;
  const Json ended = Json::parse(ReadText(At("late.out")), nullptr, false);
  EXPECT_EQ(ended["timed_out"], true) << ended;
  EXPECT_EQ(Api("/v1/scripts", {"-d", R"({"language": "bash", "code": "echo out"})"})["stdout"],
            "out\n");
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

TEST_F(GatewayClockTest, AnAccountDoesNotRestLongerWhereTheClockIsSetBack) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartShifted(provider.Url("/mode/429/v1"));
  const std::string limited = Submit("the first");
  EXPECT_TRUE(IsState(limited, "failed"));
  EXPECT_EQ(Show(limited)["code"], "rate_limited");
  const std::string resting = Submit("the second");
  EXPECT_TRUE(IsState(resting, "refused")) << "control: it rests";
  EXPECT_EQ(Show(resting)["code"], "no_account");
  Shift(-86400);
  const std::string tried = Submit("the third");
  EXPECT_TRUE(IsState(tried, "failed"));
  EXPECT_EQ(Show(tried)["code"], "rate_limited") << "it is tried again";
  EXPECT_EQ(StopGateway(), 0);
}

// ---- A configuration that changes, or is no such thing.

TEST_F(GatewayFaultTest, AChangeMeetsTheNextTaskAndNotTheOneThatRuns) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const std::string running = Submit("the first");
  ASSERT_TRUE(IsBegun(provider, "the first"));
  const std::string config = ReadText(Home() + "/config.toml");
  const std::string agent = ReadText(AgentFile("agent.toml"));
  Put("config.toml", config + "memory_byte = 1\n");
  const std::string refused = Submit("the second");
  EXPECT_TRUE(IsState(refused, "refused"));
  EXPECT_EQ(Show(refused)["code"], "invalid_config");
  EXPECT_EQ(StateOf(running), "running") << "control: it was changed in the middle";
  Put("config.toml", config);
  Put("agents/a1/agent.toml", "[agent]\nname = \"a1\"\n[container]\nsandbox_enabled = 1\n");
  const std::string unknown = Submit("the third");
  EXPECT_TRUE(IsState(unknown, "refused"));
  EXPECT_EQ(Show(unknown)["code"], "invalid_config");
  Put("agents/a1/agent.toml", agent);
  ExpectDoneOnce(provider, running, "the first");
  ExpectDoneOnce(provider, Submit("the fourth"), "the fourth");
  for (const char* prompt : {"the second", "the third"})
    EXPECT_EQ(Conversations(provider, prompt), 0) << prompt;
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

TEST_F(GatewayFaultTest, AConfigurationThatIsNoneRefusesEachTaskAndTheGatewayLivesOn) {
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const std::string path = Home() + "/config.toml";
  const std::string good = ReadText(path);
  auto replace = [&](const std::function<void()>& make) {
    fs::remove_all(path);
    make();
  };
  struct Row {
    const char* name;
    std::function<void()> make;
  };
  const std::vector<Row> rows = {
      {"a directory", [&] { fs::create_directory(path); }},
      {"a FIFO", [&] { EXPECT_EQ(::mkfifo(path.c_str(), 0644), 0); }},
      {"a link", [&] { fs::create_symlink("agents/a1/agent.toml", path); }},
      {"one that may not be read",
       [&] {
         Put("config.toml", good);
         fs::permissions(path, fs::perms::none);
       }},
      {"a huge one", [&] { Put("config.toml", good + std::string(5U << 20U, '#')); }},
      {"one of wrong types", [&] { Put("config.toml", "[container]\nsandbox = 1\n"); }},
      {"a section of wrong types", [&] { Put("config.toml", "[taskcell]\nengine = [1]\n"); }},
      {"no TOML", [&] { Put("config.toml", "[[[["); }},
      {"bytes", [&] { Put("config.toml", std::string("\0\xff\xfe", 3)); }},
  };
  for (const Row& row : rows) {
    replace(row.make);
    const std::string id = Submit("the question");
    EXPECT_TRUE(IsState(id, "refused")) << row.name;
    EXPECT_EQ(Show(id)["code"], "invalid_config") << row.name << Show(id);
  }
  EXPECT_TRUE(provider.Log().empty());
  EXPECT_FALSE(fs::exists(Home() + "/sandbox")) << "a refusal leaves nothing";
  replace([&] { Put("config.toml", good); });
  ExpectDoneOnce(provider, Submit("the last"), "the last");
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

// ---- A long way.

TEST_F(GatewayFaultTest, AHomeAsDeepAs250BytesIsServedFromSubmissionToReply) {
  MoveHomeDeep();
  gateway::ProviderProcess provider = MakeSlowProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const Outcome waited = Client({"submit", "a1", "the question", "--path", "bus", "--wait"});
  EXPECT_EQ(waited.status, 0) << waited.err;
  EXPECT_EQ(waited.out, "the reply\n");
  const std::string killed = Submit("the second");
  ASSERT_TRUE(IsBegun(provider, "the second"));
  KillGateway();
  StartGateway(provider.Url("/v1"));
  EXPECT_TRUE(IsState(killed, "interrupted"));
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_EQ(SweepLater()["directories"].size(), 1U);
  ExpectTidy();
}

TEST_F(GatewayFaultTest, AHomeAsDeepAs250BytesHasItsScriptsRun) {
  MoveHomeDeep();
  RunOptions run = AsUser();
  run.input = "echo out";
  const Outcome alone =
      test::Run({Program("taskcell"), "script", "--language", "bash", "--home", Home()}, run);
  EXPECT_EQ(alone.out, "out\n") << alone.err;
  StartGateway("http://127.0.0.1:9/v1");
  const std::string sleeper = Text("sleep 900.", ::getpid());
  Background killed = Script(sleeper, 300, "killed.out");
  ASSERT_TRUE(IsRunning(sleeper)) << ReadText(At("killed.out"));
  KillGateway();
  StartGateway("http://127.0.0.1:9/v1");
  EXPECT_EQ(Api("/v1/scripts", {"-d", R"({"language": "bash", "code": "echo out"})"})["stdout"],
            "out\n");
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_EQ(SweepLater()["directories"].size(), 1U);
  ExpectTidy();
}

}  // namespace
}  // namespace taskcell::test
