// What taskcell-gateway does by the clock: what waits is not timed, what runs long is not swept,
// what is left is swept again and again, and a service manager is told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/support/host_guard.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr time_t kTwentyMinutes = 1200;

class GatewayTimeTest : public GatewayFixture {
 protected:
  // A provider whose answer to the task's tool call waits until Release.
  gateway::ProviderProcess MakeHoldingProvider() const {
    return MakeProvider({{"steps", {{{"do", "shell"}, {"command", "true"}, {"hold", At("held")}}}},
                         {"reply", "the reply"}});
  }
  bool IsHeld() const {
    return WaitFor([this] { return fs::exists(At("held.held")); });
  }
  void Release() const { std::ofstream(At("held.go")).close(); }

  std::string Runs() const { return Home() + "/sandbox/runs/"; }
  static void MakeOld(const std::string& path) {
    const time_t then = std::time(nullptr) - kTwentyMinutes;
    const std::array<struct timespec, 2> times = {{{then, 0}, {then, 0}}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  }
  // What a killed gateway might have left.
  std::string PutAbandoned() const {
    const std::string path = Runs() + std::string(32, 'a');
    fs::create_directories(path);
    for (const std::string& each : {Home() + "/sandbox", Runs(), path}) {
      EXPECT_EQ(::chown(each.c_str(), user_->uid, user_->gid), 0);
      EXPECT_EQ(::chmod(each.c_str(), 0700), 0);
    }
    MakeOld(path);
    return path;
  }
};

TEST_F(GatewayTimeTest, ATaskThatWaitedLongerThanItsTimeLimitHasAllOfItWhenItRuns) {
  constexpr uint64_t kLimitMs = 8000;
  constexpr seconds kQueued{10};
  Agent(kLimitMs);
  Put("agents/b1/agent.toml",
      "[agent]\nname = \"b1\"\n[runtime]\nprovider = \"openai_compat\"\n[model]\npreferred = "
      "\"openai/test-model\"\n[container]\nsandbox_enabled = true\nnetwork_access = true\n"
      "timeout_ms = 100000\n");
  std::string config = ReadText(Home() + "/config.toml");
  const std::string mark = "engine = \"native\"\n";
  config.insert(config.find(mark) + mark.size(), "max_concurrent = 1\n");
  Put("config.toml", config);
  GiveHomeToUser();
  gateway::ProviderProcess provider = MakeHoldingProvider();
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const std::string first = Submit("the first", "b1");
  ASSERT_TRUE(IsHeld());
  const std::string second = Submit("the second");
  std::this_thread::sleep_for(kQueued);
  EXPECT_EQ(StateOf(second), "accepted") << "control: it did wait";
  Release();
  EXPECT_TRUE(WaitFor([this] { return IsIdle(); }));
  EXPECT_EQ(StateOf(first), "done");
  const Json task = Show(second);
  EXPECT_EQ(task["state"], "done") << task;
  EXPECT_GE(task["started_ms"].get<int64_t>() - task["accepted_ms"].get<int64_t>(),
            std::chrono::milliseconds(kQueued).count());
  EXPECT_EQ(StopGateway(), 0);
}

TEST_F(GatewayTimeTest, ARunOfTwentyMinutesInTheForegroundIsInUseForAGatewayThatStarts) {
  gateway::ProviderProcess provider = MakeHoldingProvider();
  ASSERT_TRUE(provider.IsUp());
  Background client({Program("taskcell"), "run", "a1", "the long one", "--home", Home()},
                    AsUser(provider.Url("/v1")), At("client.out"));
  ASSERT_TRUE(IsHeld()) << ReadText(At("client.out"));
  ASSERT_EQ(std::distance(fs::directory_iterator(Runs()), fs::directory_iterator()), 1);
  const std::string own = fs::directory_iterator(Runs())->path();
  MakeOld(own);
  const auto cells = CellCgroups();
  ASSERT_FALSE(cells.empty());
  const std::string abandoned = PutAbandoned();
  StartGateway(provider.Url("/v1"));
  ASSERT_TRUE(WaitFor([&] { return !fs::exists(abandoned); })) << "control: it did sweep";
  EXPECT_EQ(Client({"sweep"}).status, 0);
  EXPECT_TRUE(fs::exists(own));
  EXPECT_EQ(CellCgroups(), cells);
  EXPECT_FALSE(client.Wait({}).has_value());
  Release();
  EXPECT_EQ(client.Wait(std::chrono::minutes(1)), 0);
  EXPECT_NE(ReadText(At("client.out")).find("the reply\n"), std::string::npos)
      << ReadText(At("client.out"));
  EXPECT_EQ(Tasks().at(0)["state"], "done");
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_TRUE(CellCgroups().empty());
  ExpectTidy();
}

TEST_F(GatewayTimeTest, ItSweepsAtItsStartAndAgainEveryTenMinutes) {
  std::ofstream(At("shift"), std::ios::binary) << std::string(sizeof(long), '\0');
  fs::copy_file(SHIFTED_CLOCK_PATH, At("clock.so"));
  for (const char* name : {"shift", "clock.so"}) fs::permissions(At(name), fs::perms(0755));
  auto advance = [this](long by) {
    std::array<char, sizeof by> bytes;
    std::memcpy(bytes.data(), &by, sizeof by);
    std::fstream(At("shift"), std::ios::in | std::ios::out | std::ios::binary)
        .write(bytes.data(), bytes.size());
  };
  std::string abandoned = PutAbandoned();
  StartGateway("", {}, {"LD_PRELOAD=" + At("clock.so"), "SHIFTED_STEADY_CLOCK=" + At("shift")});
  ASSERT_TRUE(WaitFor([&] { return !fs::exists(abandoned); }));
  constexpr std::array<long, 2> kBefore = {120, 1080};  // seconds after the start, roughly
  constexpr std::array<long, 2> kAfter = {660, 1400};
  for (std::size_t round = 0; round < kAfter.size(); ++round) {
    (void)PutAbandoned();
    advance(kBefore[round]);
    std::this_thread::sleep_for(seconds(3));  // more than a tick
    EXPECT_TRUE(fs::exists(abandoned)) << round;
    advance(kAfter[round]);
    EXPECT_TRUE(WaitFor([&] { return !fs::exists(abandoned); })) << round;
  }
  EXPECT_EQ(StopGateway(), 0);
}

// What systemd(1) would read.
class Manager {
 public:
  explicit Manager(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    struct sockaddr_un address = {AF_UNIX, {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
  }
  // Takes what came; how many of it are `state`.
  std::size_t CountOf(const std::string& state) {
    std::array<char, 512> text;
    ssize_t bytes = 0;
    while ((bytes = ::recv(socket_.get(), text.data(), text.size(), 0)) >= 0)
      told_.emplace_back(text.data(), static_cast<std::size_t>(bytes));
    return static_cast<std::size_t>(std::count(told_.begin(), told_.end(), state));
  }
  const std::vector<std::string>& told() const { return told_; }

 private:
  UniqueFd socket_;
  std::vector<std::string> told_;
};

TEST_F(GatewayTimeTest, AServiceManagerIsToldWhenItServesThatItLivesAndWhenItStops) {
  Manager manager(At("notify"));
  constexpr char kLives[] = "WATCHDOG=1";
  gateway_ = std::make_unique<Background>(
      GatewayCommand(),
      [&] {
        RunOptions options = AsUser();
        options.environment.push_back("NOTIFY_SOCKET=" + At("notify"));
        options.environment.emplace_back("WATCHDOG_USEC=2000000");
        return options;
      }(),
      At("gateway.out"));
  ASSERT_TRUE(WaitFor([&] { return manager.CountOf("READY=1") == 1; }));
  EXPECT_TRUE(IsServed()) << "it is ready";
  EXPECT_EQ(manager.told().front(), "READY=1");
  const std::size_t before = manager.CountOf(kLives);
  const auto since = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitFor([&] { return manager.CountOf(kLives) >= before + 3; }));
  EXPECT_GE(std::chrono::steady_clock::now() - since, seconds(1)) << "it does not flood it";
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_EQ(manager.CountOf("STOPPING=1\nSTATUS=0 tasks run to their end"), 1U);
  EXPECT_EQ(manager.CountOf("READY=1"), 1U);
}

}  // namespace
}  // namespace taskcell::test
