// taskcell-gateway with more tasks than it may run at once, and with more clients than it likes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/support/host_guard.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

class GatewayQueueTest : public GatewayFixture {
 protected:
  void AddAgents(const std::vector<std::string>& names) const {
    for (const std::string& name : names)
      Put(Text("agents/", name, "/agent.toml"),
          Text("[agent]\nname = \"", name,
               "\"\n[runtime]\nprovider = \"openai_compat\"\n[model]\npreferred = "
               "\"openai/test-model\"\n[container]\nsandbox_enabled = true\nnetwork_access = "
               "true\ntimeout_ms = 60000\n"));
  }
  void SetMaxConcurrent(int number) const {
    std::string config = ReadText(Home() + "/config.toml");
    const std::string mark = "engine = \"native\"\n";
    config.insert(config.find(mark) + mark.size(), Text("max_concurrent = ", number, "\n"));
    Put("config.toml", config);
  }
  // Hands over tasks in one go: (agent, prompt) each; their ids.
  std::vector<std::string> SubmitAll(
      const std::vector<std::pair<std::string, std::string>>& tasks) const {
    std::vector<std::string> options;
    for (const auto& [agent, prompt] : tasks) {
      if (!options.empty())
        for (const char* word : {"http://gateway/v1/tasks", "--next", "-s", "-m", "20",
                                 "--unix-socket", "taskcell.sock"})
          options.emplace_back(word);
      options.emplace_back("-d");
      options.push_back(Json({{"agent", agent}, {"kind", "bus"}, {"prompt", prompt}}).dump());
    }
    const Outcome outcome = Curl("/v1/tasks", options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<std::string> ids;
    for (std::string_view line : Split(outcome.out, '\n')) {
      if (line.empty()) continue;
      const Json answer = Json::parse(line, nullptr, false);
      EXPECT_TRUE(answer.contains("id")) << line;
      if (answer.contains("id")) ids.push_back(answer["id"]);
    }
    return ids;
  }
  void Release(const gateway::ProviderProcess& provider) const {
    EXPECT_EQ(test::Run({"curl", "-s", "-m", "20", provider.Url("/release")}).status, 0);
  }
  int64_t Running() const { return Api("/v1/status")["running"]; }
};

constexpr std::size_t kTasks = 40;

TEST_F(GatewayQueueTest, FortyTasksOfThreeAgentsRunFourAtATimeInTurnsAndOnceEach) {
  const std::vector<std::string> agents = {"b1", "b2", "b3"};
  AddAgents(agents);
  SetMaxConcurrent(4);
  GiveHomeToUser();
  gateway::ProviderProcess provider =
      MakeProvider({{"steps", {{{"do", "shell"}, {"command", "sleep 0.2"}}}}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  // One agent hands over all of its tasks before the next does.
  std::vector<std::pair<std::string, std::string>> wanted;
  for (std::size_t i = 0; i < kTasks; ++i)
    wanted.emplace_back(agents[std::min(i / 14, agents.size() - 1)], Text("question ", i, "."));
  const std::vector<std::string> ids = SubmitAll(wanted);
  ASSERT_EQ(ids.size(), kTasks);
  int64_t most = 0;
  std::size_t most_cells = 0;
  EXPECT_TRUE(WaitFor([&] {
    const Json status = Api("/v1/status");
    most = std::max(most, status["running"].get<int64_t>());
    std::set<std::string> cells;
    for (const std::string& path : CellCgroups()) cells.insert(path.substr(path.rfind('/')));
    most_cells = std::max(most_cells, cells.size());
    return status["running"] == 0 && status["waiting"] == 0;
  }));
  EXPECT_EQ(most, 4);
  EXPECT_LE(most_cells, 4U);
  EXPECT_GE(most_cells, 2U) << "control: they do run beside each other";
  for (const auto& [agent, prompt] : wanted)
    EXPECT_EQ(Conversations(provider, prompt), 1) << prompt;

  Json tasks = Tasks();
  ASSERT_EQ(tasks.size(), kTasks);
  int64_t all_there = 0;
  for (const Json& task : tasks) {
    EXPECT_EQ(task["state"], "done") << task;
    all_there = std::max(all_there, task["accepted_ms"].get<int64_t>());
  }
  // From then on nobody is ahead of another by more than one, as long as each has tasks left.
  std::sort(tasks.begin(), tasks.end(), [](const Json& a, const Json& b) {
    return a["started_ms"].get<int64_t>() < b["started_ms"].get<int64_t>();
  });
  std::map<std::string, int> left;
  for (const Json& task : tasks)
    if (task["started_ms"] > all_there) ++left[task["agent"]];
  std::map<std::string, int> turns = {{"b1", 0}, {"b2", 0}, {"b3", 0}};
  int compared = 0;
  for (const Json& task : tasks) {
    if (task["started_ms"] <= all_there) continue;
    ++turns[task["agent"]];
    if (--left[task["agent"]] == 0) break;
    const auto [fewest, mostly] = std::minmax({turns["b1"], turns["b2"], turns["b3"]});
    EXPECT_LE(mostly - fewest, 1) << task;
    ++compared;
  }
  EXPECT_GT(compared, 10) << "control: most of them waited together";
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

// A call costs 7 cents here, each task would make four, and both ask for their second at a time
// when one more is paid for.
TEST_F(GatewayQueueTest, TwoTasksThatRaceForAnAccountsMonthSpendItAndNoMore) {
  AddAgents({"b1", "b2"});
  SetMaxConcurrent(2);
  std::ofstream(Home() + "/config.toml", std::ios::app)
      << "[taskcell.prices.test-model]\ninput = 0\noutput = 1000000\n"
         "[[accounts]]\nid = \"only\"\nprovider = \"openai\"\n"
         "api_key = \"secret://env/OPENAI_API_KEY\"\nmonthly_budget_cents = 20\n";
  GiveHomeToUser();
  constexpr int64_t kCallMicrocents = 7'000'000;
  auto step = [&](const std::string& gate) {
    return Json{{"do", "shell"}, {"command", "true"}, {"hold", At(gate)}};
  };
  gateway::ProviderProcess provider = MakeProvider(
      {{"steps", {step("first"), step("second"), step("third")}}, {"reply", "not reached"}});
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const std::vector<std::string> ids = SubmitAll({{"b1", "one."}, {"b2", "two."}});
  ASSERT_EQ(ids.size(), 2U);
  ASSERT_TRUE(WaitFor([&] { return provider.Log().size() == 2; })) << "both are under way";
  for (const char* gate : {"first.go", "third.go"}) std::ofstream(At(gate)) << "";
  // One of them got the last one there is; its answer is not there yet.
  auto has_failed = [&](const std::string& id) { return StateOf(id) == "failed"; };
  EXPECT_TRUE(WaitFor([&] { return has_failed(ids[0]) || has_failed(ids[1]); }));
  EXPECT_FALSE(has_failed(ids[0]) && has_failed(ids[1]));
  EXPECT_EQ(provider.Log().size(), 3U);
  std::ofstream(At("second.go")) << "";
  EXPECT_TRUE(WaitFor([&] { return has_failed(ids[0]) && has_failed(ids[1]); }));
  EXPECT_EQ(provider.Log().size(), 3U) << "20 cents pay for no more";
  for (const std::string& id : ids) EXPECT_EQ(Show(id)["code"], "budget_spent") << Show(id);
  int64_t calls = 0;
  int64_t paid = 0;
  const std::string receipts = ReadText(Home() + "/receipts.jsonl");
  for (std::string_view line : Split(receipts, '\n')) {
    if (line.empty()) continue;
    const Json receipt = Json::parse(line, nullptr, false)["receipt"];
    ASSERT_TRUE(receipt.contains("usage")) << line;
    calls += receipt["usage"]["model_calls"].get<int64_t>();
    paid += receipt["usage"]["cost_microcents"].get<int64_t>();
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(paid, 3 * kCallMicrocents);
  const std::string metrics = Curl("/metrics").out;
  EXPECT_NE(metrics.find("_account_spent_cents{account=\"only\"} 21.000000\n"), std::string::npos)
      << metrics;
  // And whoever comes later is refused.
  const std::vector<std::string> late = SubmitAll({{"b1", "three."}});
  ASSERT_EQ(late.size(), 1U);
  EXPECT_TRUE(WaitFor([&] { return Show(late[0])["code"] == "no_account"; })) << Show(late[0]);
  EXPECT_EQ(provider.Log().size(), 3U);
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

TEST_F(GatewayQueueTest, AWaitingTaskIsCancelledAtOnceAndARunningOneWithItsCell) {
  SetMaxConcurrent(1);
  GiveHomeToUser();
  gateway::ProviderProcess provider = MakeProvider({{"steps", Json::array()}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/mode/hang/v1"));
  const std::string running = Submit("the first");
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the first") == 1; }));
  const std::string waiting = Submit("the second");
  EXPECT_EQ(ClientJson({"cancel", waiting})["was"], "accepted");
  EXPECT_EQ(StateOf(waiting), "cancelled");
  EXPECT_EQ(ClientJson({"cancel", running})["was"], "running");
  EXPECT_TRUE(WaitFor([&] { return StateOf(running) == "cancelled"; }));
  EXPECT_TRUE(WaitFor([&] { return CellCgroups().empty(); }));
  EXPECT_NE(Client({"cancel", running}).status, 0) << "it has ended";
  EXPECT_EQ(Conversations(provider, "the second"), 0);
  EXPECT_EQ(Running(), 0);
  EXPECT_EQ(StopGateway(), 0);
  ExpectTidy();
}

TEST_F(GatewayQueueTest, SigtermLetsEndWhatRunsAndLeavesWhatWaitsToTheNext) {
  SetMaxConcurrent(1);
  GiveHomeToUser();
  gateway::ProviderProcess provider =
      MakeProvider({{"steps", {{{"do", "shell"}, {"command", "sleep 1.5"}}}}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/v1"));
  const std::string running = Submit("the first");
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the first") == 1; }));
  const std::string waiting = Submit("the second");
  gateway_->Signal(SIGTERM);
  ASSERT_TRUE(WaitFor([&] { return Api("/v1/status")["accepting"] == false; }));
  const Outcome refused = Client({"submit", "a1", "the third", "--path", "bus"});
  EXPECT_NE(refused.status, 0);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("gateway_stopping"), std::string::npos) << refused.err;
  EXPECT_EQ(gateway_->Wait(std::chrono::minutes(1)), 0);
  EXPECT_EQ(StateOf(running), "done");
  EXPECT_EQ(StateOf(waiting), "accepted");
  EXPECT_EQ(Conversations(provider, "the second"), 0);
  StartGateway(provider.Url("/v1"));
  EXPECT_TRUE(WaitFor([&] { return IsIdle(); }));
  EXPECT_EQ(StateOf(waiting), "done");
  for (const char* prompt : {"the first", "the second"})
    EXPECT_EQ(Conversations(provider, prompt), 1) << prompt;
  EXPECT_EQ(Tasks().size(), 2U) << "the refused one is not there";
  EXPECT_EQ(StopGateway(), 0);
}

TEST_F(GatewayQueueTest, WhatDoesNotEndInTimeAfterSigtermIsCancelled) {
  gateway::ProviderProcess provider = MakeProvider({{"steps", Json::array()}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/mode/hang/v1"), {"--drain-seconds", "1"});
  const std::string running = Submit("the first");
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the first") == 1; }));
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_EQ(StateOf(running), "cancelled");
  EXPECT_TRUE(CellCgroups().empty());
  ExpectTidy();
}

TEST_F(GatewayQueueTest, WhatWaitsWhenAGatewayIsKilledRunsOnceInTheNext) {
  SetMaxConcurrent(2);
  GiveHomeToUser();
  gateway::ProviderProcess provider = MakeProvider({{"steps", Json::array()}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  StartGateway(provider.Url("/mode/hang/v1"));
  std::vector<std::pair<std::string, std::string>> wanted;
  for (int i = 0; i < 8; ++i) wanted.emplace_back("a1", Text("question ", i, "."));
  const std::vector<std::string> ids = SubmitAll(wanted);
  ASSERT_EQ(ids.size(), wanted.size());
  ASSERT_TRUE(WaitFor([&] { return provider.Log().size() == 2; }));
  KillGateway();
  StartGateway(provider.Url("/v1"));
  EXPECT_TRUE(WaitFor([&] { return IsIdle(); }));
  std::map<std::string, int> states;
  for (const Json& task : Tasks()) ++states[task["state"]];
  EXPECT_EQ(states, (std::map<std::string, int>{{"interrupted", 2}, {"done", 6}}));
  for (const auto& [agent, prompt] : wanted)
    EXPECT_EQ(Conversations(provider, prompt), 1) << prompt;
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_TRUE(SweepLater()["failures"].empty());
  ExpectTidy();
}

// Ten thousand that wait are put into the ledger as a gateway would.
TEST_F(GatewayQueueTest, AFullQueueRefusesOneMoreClearlyAndWorksOn) {
  gateway::ProviderProcess provider = MakeProvider({{"steps", Json::array()}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  SetMaxConcurrent(1);
  GiveHomeToUser();
  StartGateway(provider.Url("/mode/hang/v1"));
  ASSERT_FALSE(Submit("the first").empty());
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "the first") == 1; }));
  const Outcome seeded = test::Run(
      {"python3", "-c",
       "import sqlite3, sys\n"
       "ledger = sqlite3.connect(sys.argv[1], timeout=30)\n"
       "for i in range(9999):\n"
       "  row = ('%032x' % i, 'a1', 'bus', '', 'accepted', '', '', 1, 0, 0)\n"
       "  ledger.execute('INSERT INTO tasks VALUES (?,?,?,?,?,?,?,?,?,?)', row)\n"
       "  ledger.execute('INSERT INTO prompts (task, prompt) VALUES (?, ?)', (row[0], 'x'))\n"
       "ledger.commit()\n",
       Home() + "/taskcell.db"},
      AsUser());
  ASSERT_EQ(seeded.status, 0) << seeded.err;
  EXPECT_EQ(Api("/v1/status")["waiting"], 9999);
  const std::string last = Submit("the last that fits");
  ASSERT_FALSE(last.empty());
  const Outcome refused = Client({"submit", "a1", "one more", "--path", "bus"});
  EXPECT_NE(refused.status, 0);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("queue_full: 10000 tasks wait already; try again when some have run"),
            std::string::npos)
      << refused.err;
  const Json body = {{"agent", "a1"}, {"kind", "bus"}, {"prompt", "one more"}};
  EXPECT_EQ(Curl("/v1/tasks", {"-d", body.dump(), "-o", "/dev/null", "-w", "%{http_code}"}).out,
            "429");
  EXPECT_EQ(ClientJson({"cancel", last})["was"], "accepted");
  EXPECT_FALSE(Submit("and fits again").empty());
  EXPECT_EQ(Tasks().size(), 10002U) << "nothing was lost";
  gateway_->Signal(SIGTERM);
  ASSERT_TRUE(WaitFor([this] { return Api("/v1/status")["accepting"] == false; }));
  gateway_->Signal(SIGTERM);
  EXPECT_EQ(gateway_->Wait(std::chrono::minutes(1)), 0) << "a second one cancels at once";
}

class GatewayClientsTest : public GatewayQueueTest {
 protected:
  void SetUp() override {
    GatewayQueueTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    StartGateway("");
  }
  UniqueFd Connect() const {
    return sys::ConnectUnix(Home() + "/taskcell.sock", SOCK_STREAM).value();
  }
  // Whether a further client is answered within `seconds`.
  bool IsAnswered(int seconds) const {
    const std::string answer = Curl("/v1/status", {"-m", std::to_string(seconds)}).out;
    return answer.find("\"accepting\":true") != std::string::npos;
  }
};

TEST_F(GatewayClientsTest, HalfAndSlowOnesHoldNobodyUp) {
  std::vector<UniqueFd> clients;
  const std::vector<std::string> beginnings = {
      "", "GET /v1/sta", "GET /v1/status HTTP/1.1\r\nHost: x\r\nX-More: ",
      "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n{\"agent\":",
      "\x01\x02 nonsense"};
  for (std::size_t i = 0; i < 100; ++i) {
    clients.push_back(Connect());
    (void)sys::WriteAll(clients.back().get(), beginnings[i % beginnings.size()]);
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(IsAnswered(5));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  EXPECT_TRUE(Tasks().empty()) << "nothing half was taken in";
  EXPECT_EQ(StopGateway(), 0) << "and they do not keep it from ending";
}

TEST_F(GatewayClientsTest, OneMoreThan128IsToldSoAndServedWhenOneHasGone) {
  constexpr std::size_t kBound = 128;
  std::vector<UniqueFd> clients;
  while (clients.size() < kBound) {
    clients.push_back(Connect());
    ASSERT_TRUE(sys::WriteAll(clients.back().get(), "GET /v1/st").ok());
  }
  EXPECT_EQ(Api("/v1/status")["code"], "too_many_clients");
  const Outcome refused = Client({"submit", "a1", "one more", "--path", "bus"});
  EXPECT_NE(refused.status, 0);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("too_many_clients: 128 clients are connected already"),
            std::string::npos)
      << refused.err;
  clients.pop_back();
  EXPECT_TRUE(WaitFor([this] { return Api("/v1/status").contains("accepting"); }));
  EXPECT_TRUE(Tasks().empty());
  // So many that even telling them has an end: whoever goes makes room.
  constexpr std::size_t kFarMore = 300;
  while (clients.size() < kFarMore) clients.push_back(Connect());
  clients.clear();
  EXPECT_TRUE(WaitFor([this] { return IsAnswered(5); }));
}

}  // namespace
}  // namespace taskcell::test
