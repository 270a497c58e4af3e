// What a gateway asks of its engine for a task, and which programs it starts: no more than the task
// takes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// Its taskcell-launch says each time that it was started; between it and the engine is one that
// keeps connections, and notes what it is asked.
class GatewayCostTest : public GatewayFixture {
 protected:
  void SetUp() override {
    GatewayFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fs::create_directory(At("bin"));
    fs::create_directory(At("starts"));
    fs::permissions(At("starts"), fs::perms(01777));
    for (const char* name : {"taskcell-gateway", "taskcell-init", "taskcell-loop", "taskcell-host"})
      fs::copy_file(Program(name), At(Text("bin/", name)));
    std::ofstream(At("bin/taskcell-launch"))
        << "#!/bin/sh\n: >\"" << At("starts") << "/$$ $1\"\nexec \"" << Program("taskcell-launch")
        << "\" \"$@\"\n";
    fs::permissions(At("bin/taskcell-launch"), fs::perms(0755));
    engine_ = std::make_unique<FakeEngine>(
        [this](const FakeEngine::Request& request) { return Forward(request); },
        FakeEngine::Close::kWhenItSaysSo);
    Admit(*engine_);
  }
  void TearDown() override {
    gateway_.reset();
    engine_.reset();
    GatewayFixture::TearDown();
  }

  void Start(const std::string& url) {
    RunOptions run = AsUser(url);
    run.environment.back() = "DOCKER_HOST=unix://" + engine_->socket_path();
    gateway_ = std::make_unique<Background>(Strings{At("bin/taskcell-gateway"), "--home", Home()},
                                            run, At("gateway.out"));
    AwaitService([this] { return gateway_->Wait({}).has_value(); });
  }

  void RunTask() {
    const std::string id = Submit("the question");
    ASSERT_TRUE(WaitFor([&] { return StateOf(id) == "done"; })) << Show(id);
  }

  // "METHOD last/words" of what was asked since it was last looked, without version and ids.
  Strings Asked() {
    Strings asked;
    const std::vector<FakeEngine::Request> all = engine_->requests();
    for (; seen_ < all.size(); ++seen_) {
      const std::string target = all[seen_].target.substr(0, all[seen_].target.find('?'));
      const std::vector<std::string_view> parts = Split(target, '/');
      std::string shown = all[seen_].method;
      for (std::string_view part : parts) {
        const bool is_id = part.size() == 64 || part.starts_with("v1.") || part.empty();
        if (!is_id && part.find(':') == std::string_view::npos) shown += Text(" ", part);
      }
      asked.push_back(std::move(shown));
    }
    // An engine that is just removing the container by itself refuses, and is looked at and asked
    // again.
    const Strings again = {"GET containers json", "DELETE containers"};
    while (asked.size() >= 4 && std::equal(again.begin(), again.end(), asked.end() - 2) &&
           std::equal(again.begin(), again.end(), asked.end() - 4))
      asked.resize(asked.size() - 2);
    return asked;
  }

  // The first words of the command lines of taskcell-launch, in no order.
  std::multiset<std::string> Starts() const {
    std::multiset<std::string> words;
    for (const auto& entry : fs::directory_iterator(At("starts"))) {
      const std::string name = entry.path().filename();
      words.insert(name.substr(name.find(' ') + 1));
    }
    return words;
  }

  std::unique_ptr<FakeEngine> engine_;

 private:
  std::string Forward(const FakeEngine::Request& request) const {
    constexpr std::string_view kClosing = "Connection: close\r\n";
    std::string answer = ForwardToEngine(socket_, request);
    const std::size_t at = answer.find(kClosing);
    if (at != std::string::npos) answer.erase(at, kClosing.size());
    return answer;
  }

  std::size_t seen_ = 0;
};

TEST_F(GatewayCostTest, ATaskAsksTheEngineForItsCellAloneAndStartsNothingBesideIt) {
  const gateway::ProviderProcess provider =
      MakeProvider({{"steps", Json::array()}, {"reply", "the reply"}});
  ASSERT_TRUE(provider.IsUp());
  Start(provider.Url("/v1"));
  RunTask();
  const Strings cell = {"GET containers json",   "GET images json",     "POST containers create",
                        "POST containers start", "GET containers json", "DELETE containers"};
  Strings first = {"GET _ping", "GET info"};
  first.insert(first.end(), cell.begin(), cell.end());
  EXPECT_EQ(Asked(), first);
  const std::multiset<std::string> starts = Starts();
  EXPECT_EQ(starts.count("--snapshot-fd"), 1U);
  RunTask();
  EXPECT_EQ(Asked(), cell);
  EXPECT_EQ(Starts(), starts);
  EXPECT_EQ(StopGateway(), 0);
}

}  // namespace
}  // namespace taskcell::test
