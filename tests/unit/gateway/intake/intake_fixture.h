#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/intake/intake.h"
#include "gateway/ledger/gateway_log.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/task_record.h"
#include "launcher/base/text.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {

// A home of the platform, with its queues as its own programs make them.
class IntakeFixture : public testing::Test {
 protected:
  using Json = nlohmann::json;
  static constexpr char kBus[] = "bus_queue.jsonl";

  void SetUp() override {
    ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0);
    home_ = std::make_unique<Home>(OpenHome(directory_.path()).value());
    Restart();
  }

  // As a gateway that was ended and started again.
  void Restart() {
    intake_.reset();
    intake_ = Intake::Make(*home_).value();
  }
  // A look that meets no trouble.
  void Look(bool take = true) { EXPECT_EQ(intake_->Look(take), std::vector<std::string>()); }
  // The troubles of a look, one a line.
  std::string Troubles() {
    std::string text;
    for (const std::string& trouble : intake_->Look(true)) text += trouble + "\n";
    return text;
  }

  static std::string Message(const std::string& id, const std::string& agent,
                             const std::string& payload, const Json& more = Json::object()) {
    Json line = {{"type", "agent_message"}, {"message_id", id}, {"agent_id", agent},
                 {"payload", payload},      {"timestamp", "t"}, {"delegation_depth", 0}};
    line.update(more);
    return line.dump() + "\n";
  }
  std::string Bus() const { return directory_.Get(kBus); }
  // The replies on the bus to a message.
  std::vector<Json> Replies(const std::string& id) const {
    std::vector<Json> replies;
    const std::string bus = Bus();
    for (std::string_view line : Split(bus, '\n')) {
      const Json object = Json::parse(line, nullptr, false);
      if (object.is_object() && object.value("type", "") == "agent_response" &&
          object.value("in_reply_to", "") == id)
        replies.push_back(object);
    }
    return replies;
  }

  // message_queue.db as the platform makes it; `more` are further columns.
  void MakeQueue(const std::string& more = "") const {
    directory_.Put("message_queue.db", "");
    Queue("PRAGMA journal_mode=WAL");
    Queue(Text(
        "CREATE TABLE message_queue (id TEXT PRIMARY KEY, sender TEXT NOT NULL, target TEXT NOT "
        "NULL, payload TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending', retry_count INTEGER "
        "NOT NULL DEFAULT 0, delegation_depth INTEGER NOT NULL DEFAULT 0, origin_agent TEXT, "
        "sender_agent TEXT, error TEXT, response TEXT, created_at TEXT NOT NULL, acked_at TEXT, "
        "completed_at TEXT, reply_channel TEXT, turn_id TEXT, session_id TEXT",
        more, ")"));
    Queue(
        "CREATE TABLE delegation_callbacks (message_id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, "
        "channel_type TEXT NOT NULL, channel_id TEXT NOT NULL, thread_id TEXT, retry_count INTEGER "
        "NOT NULL DEFAULT 0, created_at TEXT NOT NULL)");
  }
  // Executes a statement on it.
  void Queue(const std::string& sql) const {
    Status done = Database::OpenForeign(directory_.At("message_queue.db"))->Execute(sql);
    EXPECT_TRUE(done.ok()) << sql << ": " << (done.ok() ? "" : done.error().text);
  }
  void Row(const std::string& id, const std::string& target, const std::string& payload,
           const std::string& sender = "a2", const std::string& created = "2026") const {
    Queue(Text("INSERT INTO message_queue (id, sender, target, payload, created_at) VALUES ('", id,
               "', '", sender, "', '", target, "', '", payload, "', '", created, "')"));
  }
  // One value of it, as text.
  std::string Ask(const std::string& sql) const {
    Database queue = Database::OpenForeign(directory_.At("message_queue.db")).value();
    Statement select = queue.Prepare(sql).value();
    return select.Step().value() ? select.Text(0) : "(no row)";
  }
  std::string StateOf(const std::string& id) const {
    return Ask(Text("SELECT status FROM message_queue WHERE id = '", id, "'"));
  }

  Ledger OpenLedger() const { return Ledger::Open(home_->fd.get(), home_->path).value(); }
  // Lets every task that waits run to an end; their prompts, in order.
  std::vector<std::string> RunAll(const TaskAnswer& answer) const {
    std::vector<std::string> prompts;
    Ledger ledger = OpenLedger();
    while (std::optional<ClaimedTask> task = ledger.Claim("me", 9).value()) {
      prompts.push_back(Text(task->row.agent, ": ", task->prompt));
      TaskEnd end;
      end.state = StateFor(answer);
      end.code = answer.code;
      end.answer = AnswerJson(answer);
      EXPECT_TRUE(ledger.Finish(task->row.id, end).ok());
    }
    return prompts;
  }
  static TaskAnswer Reply(std::string text) {
    TaskAnswer answer;
    answer.reply = std::move(text);
    return answer;
  }
  std::string Log() const {
    const auto now = WallClock::now();
    return directory_.Get(Text("logs/", LogName(now)));
  }
  std::size_t LogLines() const {
    const std::string log = Log();
    return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
  }

  // In memory: a look waits for the disk again and again.
  test::TempDirectory directory_{"intake", "/dev/shm"};
  std::unique_ptr<Home> home_;
  std::unique_ptr<Intake> intake_;
};

}  // namespace taskcell::gateway
