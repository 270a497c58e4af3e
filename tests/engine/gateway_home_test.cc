// What a real gateway does for the home of a platform: serves its queues, skips mail, refuses team
// rounds and what must not run on the host.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class GatewayHomeTest : public GatewayFixture {
 protected:
  static Json Scenario() { return {{"steps", Json::array()}, {"reply", "from the cell"}}; }

  static std::string Message(const std::string& id, const std::string& agent,
                             const std::string& payload) {
    return Json({{"type", "agent_message"},
                 {"message_id", id},
                 {"agent_id", agent},
                 {"payload", payload},
                 {"timestamp", "2026-10-02T08:15:30+00:00"}})
               .dump() +
           "\n";
  }
  // The replies on the bus to a message.
  std::vector<std::string> RepliesTo(const std::string& id) const {
    std::vector<std::string> replies;
    const std::string bus = ReadText(Home() + "/bus_queue.jsonl");
    for (std::string_view line : Split(bus, '\n')) {
      const Json object = Json::parse(line, nullptr, false);
      if (object.is_object() && object.value("in_reply_to", "") == id)
        replies.push_back(object["payload"]);
    }
    return replies;
  }
  // Runs SQL on message_queue.db as the test user; what it selects.
  std::string Sql(const std::string& sql) const {
    constexpr char kProgram[] =
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30)\n"
        "for statement in sys.argv[2].split(';'): rows = c.execute(statement).fetchall()\n"
        "c.commit(); print('|'.join(str(v) for row in rows for v in row), end='')";
    RunOptions options;
    options.user = user_;
    const Outcome done =
        test::Run({"python3", "-c", kProgram, Home() + "/message_queue.db", sql}, options);
    EXPECT_EQ(done.status, 0) << done.err;
    return done.out;
  }
  // Every file of the home but the records of what happened, with what is in it.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(Home())) {
      const std::string name = entry.path().string().substr(Home().size());
      if (!entry.is_regular_file() || name.starts_with("/logs/") ||
          name.starts_with("/taskcell.db") || name == "/security_audit.jsonl")
        continue;
      files[name] = ReadText(entry.path());
    }
    return files;
  }
};

TEST_F(GatewayHomeTest, BothQueuesAreServedFromCellsAndAnswered) {
  const gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  Put("bus_queue.jsonl", Message("m1", "a1", "first-prompt") + Message("m2", "nobody", "x"));
  GiveHomeToUser();
  (void)Sql(
      "PRAGMA journal_mode=WAL;CREATE TABLE message_queue (id TEXT PRIMARY KEY, sender TEXT NOT "
      "NULL, target TEXT NOT NULL, payload TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending', "
      "retry_count INTEGER NOT NULL DEFAULT 0, delegation_depth INTEGER NOT NULL DEFAULT 0, "
      "origin_agent TEXT, sender_agent TEXT, error TEXT, response TEXT, created_at TEXT NOT NULL, "
      "acked_at TEXT, completed_at TEXT);INSERT INTO message_queue (id, sender, target, payload, "
      "created_at) VALUES ('q1', 'heartbeat', 'a1', 'second-prompt', '2026')");
  StartGateway(provider.Url("/v1"));
  ASSERT_TRUE(WaitFor([&] {
    return RepliesTo("m1").size() == 1 && RepliesTo("m2").size() == 1 &&
           Sql("SELECT status FROM message_queue") == "done";
  })) << ReadText(Home() + "/bus_queue.jsonl");
  EXPECT_EQ(RepliesTo("m1")[0], "from the cell");
  EXPECT_THAT(RepliesTo("m2")[0],
              HasSubstr("⚠️ 子任務失敗（任務沙箱，agent_not_found）："));
  EXPECT_EQ(Sql("SELECT response FROM message_queue"), "from the cell");
  EXPECT_EQ(Conversations(provider, "first-prompt"), 1);
  EXPECT_EQ(Conversations(provider, "second-prompt"), 1);
  std::map<std::string, std::string> kinds;
  for (const Json& task : Tasks()) kinds[task["kind"]] = task["state"];
  EXPECT_EQ(kinds["heartbeat"], "done");
  const std::string lock = Home() + "/locks/gateway.lock";
  EXPECT_EQ(test::Run({"flock", "-n", lock, "true"}).status, 1) << "no other may serve them";
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_EQ(test::Run({"flock", "-n", lock, "true"}).status, 0);
  ExpectTidy();
}

TEST_F(GatewayHomeTest, AMessageWhoseGatewayIsKilledIsAnsweredOnceAndNotRunAgain) {
  const gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  Put("bus_queue.jsonl", Message("m1", "a1", "only-once"));
  StartGateway(provider.Url("/mode/hang/v1"));
  ASSERT_TRUE(WaitFor([&] { return Conversations(provider, "only-once") == 1; }));
  KillGateway();
  EXPECT_TRUE(RepliesTo("m1").empty());
  StartGateway(provider.Url("/v1"));
  ASSERT_TRUE(WaitFor([&] { return !RepliesTo("m1").empty(); }));
  EXPECT_THAT(RepliesTo("m1")[0], HasSubstr("whether it had an effect is not known"));
  EXPECT_EQ(StopGateway(), 0);
  EXPECT_EQ(RepliesTo("m1").size(), 1U);
  EXPECT_EQ(Conversations(provider, "only-once"), 1);
  EXPECT_EQ(SweepLater()["directories"].size(), 1U) << "of the killed gateway's run";
}

TEST_F(GatewayHomeTest, WhileAnotherGatewayServesTheQueuesNothingIsTaken) {
  const gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  Put("bus_queue.jsonl", Message("m1", "a1", "later"));
  Put("locks/gateway.lock", "");
  Put("locks/gateway.lock.holder", "pid=77 since=then\n");
  GiveHomeToUser();
  UniqueFd other(::open((Home() + "/locks/gateway.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  StartGateway(provider.Url("/v1"));
  ASSERT_TRUE(WaitFor([&] {
    return ReadText(At("gateway.out"))
               .find(
                   "another gateway serves the queues of this home "
                   "(pid=77 since=then)") != std::string::npos;
  }));
  EXPECT_EQ(ReadText(Home() + "/bus_queue.jsonl"), Message("m1", "a1", "later"));
  EXPECT_NE(Submit("meanwhile"), "") << "its own queue is another matter";
  other.Reset();
  EXPECT_TRUE(WaitFor([&] { return RepliesTo("m1").size() == 1; }));
}

TEST_F(GatewayHomeTest, MailIsAnsweredAtOnceAndStaysWhereItIs) {
  const gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  Put("agents/a1/inbox/1.eml", "untrusted");
  GiveHomeToUser();
  StartGateway(provider.Url("/v1"));
  const std::map<std::string, std::string> before = Files();
  for (int turn = 0; turn < 2; ++turn) {
    const Outcome mail = Client({"submit", "a1", "mail came", "--path", "mail", "--json"});
    EXPECT_EQ(mail.status, 3) << mail.err;
    const Json answer = Json::parse(mail.out, nullptr, false);
    EXPECT_EQ(answer["code"], "skipped") << mail.out;
    EXPECT_EQ(answer["by_gateway"], true);
    EXPECT_EQ(answer["task_id"], "");
  }
  EXPECT_EQ(Client({"run", "a1", "mail came", "--path", "mail"}).status, 3);
  EXPECT_TRUE(Tasks().empty()) << "nothing is queued";
  EXPECT_EQ(Files(), before);
  const Json event = Json::parse(ReadText(Home() + "/security_audit.jsonl"));
  EXPECT_EQ(event["event_type"], "task_sandbox_not_applied") << "once in the life of the gateway";
  EXPECT_EQ(event["details"], (Json{{"action", "skipped"}, {"path", "mail"}}));
  EXPECT_TRUE(provider.Log().empty());
}

TEST_F(GatewayHomeTest, TeamRoundsAndWhatWouldRunOnTheHostAreRefusedThroughItToo) {
  const gateway::ProviderProcess provider = MakeProvider(Scenario());
  ASSERT_TRUE(provider.IsUp());
  Put("bin/claude", "#!/bin/sh\ntouch \"" + At("ran") + "\"\n");
  GiveHomeToUser();
  StartGateway(provider.Url("/v1"));
  struct Row {
    std::vector<std::string> words;
    std::string code;
  };
  for (const Row& row : {Row{{"--path", "goal_round", "--role", "planner"}, "team_round_refused"},
                         Row{{"--path", "cron", "--require-cell"}, "cell_required"}}) {
    for (const std::string command : {"submit", "run"}) {
      std::vector<std::string> words = {command, "a1", "x", "--json"};
      words.insert(words.end(), row.words.begin(), row.words.end());
      if (command == "submit") words.emplace_back("--wait");
      const Outcome refused = Client(words);
      EXPECT_EQ(refused.status, 3) << refused.err;
      const Json answer = Json::parse(refused.out, nullptr, false);
      EXPECT_EQ(answer["code"], row.code) << refused.out;
      EXPECT_EQ(answer["by_gateway"], true);
      EXPECT_EQ(answer["ran_on_host"], false);
      EXPECT_EQ(StateOf(answer["task_id"]), "refused");
    }
  }
  EXPECT_TRUE(provider.Log().empty());
  const Outcome wrong = Client({"submit", "a1", "x", "--path", "goal_round", "--role", "chief"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("planner, executor, verifier or synthesiser"));
  EXPECT_EQ(
      Json::parse(Client({"submit", "a1", "plain", "--path", "goal_round", "--wait", "--json"})
                      .out)["reply"],
      "from the cell")
      << "control: a Solo round runs";
}

// The same bytes as without a gateway, but for who ran it and which task it was.
TEST_F(GatewayHomeTest, AnswersThroughItAreAsTheGuideHasThem) {
  Put("agents/a2/agent.toml",
      "[agent]\nname = \"a2\"\n[model]\npreferred = \"m\"\n[container]\n"
      "sandbox_enabled = true\nnetwork_access = false\n");
  GiveHomeToUser();
  StartGateway("");
  for (const auto& [agent, golden] : std::initializer_list<std::pair<std::string, std::string>>{
           {"a2", "refusal.json"}, {"nobody", "failure.json"}}) {
    const std::vector<std::vector<std::string>> ways = {
        {"submit", agent, "Do it.", "--path", "bus", "--wait", "--json"},
        {"run", agent, "Do it.", "--json"}};
    for (const std::vector<std::string>& words : ways) {
      std::string out = Client(words).out;
      constexpr std::string_view kId = "\"task_id\":\"";
      constexpr std::string_view kBy = "\"by_gateway\":true";
      ASSERT_NE(out.find(kId), std::string::npos) << out;
      out.erase(out.find(kId) + kId.size(), 32);
      ASSERT_NE(out.find(kBy), std::string::npos) << out;
      out.replace(out.find(kBy), kBy.size(), "\"by_gateway\":false");
      EXPECT_EQ(out, ReadText(Text(GOLDEN_ANSWERS, "/", golden))) << words[0];
    }
  }
}

}  // namespace
}  // namespace taskcell::test
