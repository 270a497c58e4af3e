#include "gateway/intake/bus_message.h"

#include <gtest/gtest.h>

#include "gateway/config/agent_config.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

BusMessage For(std::string agent, std::string payload = "x") {
  BusMessage message;
  message.message_id = "m";
  message.agent_id = std::move(agent);
  message.payload = std::move(payload);
  return message;
}

TEST(BusMessageTest, AWholeMessageIsRead) {
  const BusLine line = ParseBusLine(
      R"({"type":"agent_message","message_id":"m1","agent_id":"a1","payload":"do\nit",)"
      R"("timestamp":"2026-10-02T08:15:30+00:00","delegation_depth":2,"hop_depth":3,)"
      R"("origin_agent":"o","sender_agent":"s","turn_id":"t","session_id":null,"new":[1]})");
  ASSERT_EQ(line.kind, BusLineKind::kMessage) << line.trouble;
  EXPECT_EQ(line.message.message_id, "m1");
  EXPECT_EQ(line.message.agent_id, "a1");
  EXPECT_EQ(line.message.payload, "do\nit");
  EXPECT_EQ(line.message.delegation_depth, 2U);
  EXPECT_EQ(line.message.hop_depth, 3U);
  EXPECT_EQ(line.message.origin_agent, "o");
  EXPECT_EQ(line.message.sender_agent, "s");
  EXPECT_EQ(line.message.sender, "s");
  EXPECT_EQ(line.message.turn_id, "t");
  EXPECT_EQ(line.message.session_id, "");
}

TEST(BusMessageTest, WhatIsNotForUsIsToldFromWhatIsBroken) {
  struct Row {
    std::string line;
    BusLineKind kind;
    std::string trouble;
  };
  const std::string long_id(kMaxMessageIdBytes + 1, 'i');
  for (const Row& row : {
           Row{R"({"type":"agent_response","message_id":"r"})", BusLineKind::kReply, ""},
           Row{R"({"type":"agent_response"})", BusLineKind::kOther, ""},
           Row{R"({"type":"proactive_notification","agent_id":"a"})", BusLineKind::kOther, ""},
           Row{R"({"no":"type"})", BusLineKind::kOther, ""},
           Row{"{\"type\":\"agent_message\"", BusLineKind::kBroken, "no JSON object"},
           Row{"[]", BusLineKind::kBroken, "no JSON object"},
           Row{"\xff\xfe", BusLineKind::kBroken, "no JSON object"},
           Row{std::string(100, '['), BusLineKind::kBroken, "no JSON object"},
           Row{R"({"type":"agent_message","agent_id":"a","payload":"p"})", BusLineKind::kBroken,
               "`message_id` is missing"},
           Row{R"({"type":"agent_message","message_id":"","agent_id":"a","payload":"p"})",
               BusLineKind::kBroken, "1 to 256"},
           Row{Text(R"({"type":"agent_message","agent_id":"a","payload":"p","message_id":")",
                    long_id, "\"}"),
               BusLineKind::kBroken, "1 to 256"},
           Row{R"({"type":"agent_message","message_id":"m","agent_id":1,"payload":"p"})",
               BusLineKind::kBroken, "`agent_id`"},
           Row{R"({"type":"agent_message","message_id":"m","agent_id":"a","payload":null})",
               BusLineKind::kBroken, "`payload`"},
           Row{R"({"type":"agent_message","message_id":"m","agent_id":"a","payload":"p",)"
               R"("delegation_depth":256})",
               BusLineKind::kBroken, "`delegation_depth` is no number from 0 to 255"},
           Row{R"({"type":"agent_message","message_id":"m","agent_id":"a","payload":"p",)"
               R"("delegation_depth":"1"})",
               BusLineKind::kBroken, "`delegation_depth`"},
           Row{R"({"type":"agent_message","message_id":"m","agent_id":"a","payload":"p",)"
               R"("hop_depth":-1})",
               BusLineKind::kBroken, "`hop_depth`"},
           Row{R"({"type":"agent_message","message_id":"m","agent_id":"a","payload":"p",)"
               R"("session_id":7})",
               BusLineKind::kBroken, "`session_id` is no string"},
       }) {
    const BusLine line = ParseBusLine(row.line);
    EXPECT_EQ(line.kind, row.kind) << row.line << line.trouble;
    EXPECT_NE(line.trouble.find(row.trouble), std::string::npos) << row.line << line.trouble;
    EXPECT_EQ(line.trouble.empty(), row.trouble.empty()) << row.line;
  }
}

TEST(BusMessageTest, TooMuchTooFarOrForNobodyIsNoTask) {
  EXPECT_FALSE(ObjectionTo(For("a", std::string(100000, 'x'))).has_value());
  EXPECT_NE(ObjectionTo(For("a", std::string(100001, 'x')))->find("100001 bytes"),
            std::string::npos);
  BusMessage message = For("a");
  message.delegation_depth = 4;
  EXPECT_FALSE(ObjectionTo(message).has_value());
  message.delegation_depth = 5;
  message.origin_agent = "o\n";
  EXPECT_NE(ObjectionTo(message)->find(
                "delegation depth limit (5) exceeded: origin=o\\n, sender=unknown, depth=5"),
            std::string::npos)
      << *ObjectionTo(message);
  EXPECT_TRUE(ObjectionTo(For("")).has_value());
  EXPECT_FALSE(ObjectionTo(For(std::string(kMaxAgentNameBytes, 'a'))).has_value());
  EXPECT_TRUE(ObjectionTo(For(std::string(kMaxAgentNameBytes + 1, 'a'))).has_value());
}

// Whoever may write a row must not be able to choose the host for it.
TEST(BusMessageTest, EveryMessageAsksForAKindThatRunsInACellButAnEphemeralAgents) {
  struct Row {
    std::string_view sender, id;
    TaskKind kind;
  };
  for (const Row& row :
       {Row{"a2", "m", TaskKind::kBus}, Row{"dashboard", "m", TaskKind::kDashboard},
        Row{"heartbeat", "m", TaskKind::kHeartbeat},
        Row{"heartbeat-scheduler", "m", TaskKind::kHeartbeat},
        Row{"goal-loop-driver", "m", TaskKind::kGoalRound},
        Row{"a2", "goal:t1:3", TaskKind::kGoalRound},
        Row{"autopilot", "m", TaskKind::kAutopilotDelegate}, Row{"cron", "m", TaskKind::kBus},
        Row{"webhook", "m", TaskKind::kBus}, Row{"channel_reply", "m", TaskKind::kBus},
        Row{"mail", "m", TaskKind::kBus}, Row{"", "m", TaskKind::kBus}}) {
    BusMessage message = For("a1");
    message.sender = row.sender;
    message.message_id = row.id;
    EXPECT_EQ(KindOf(message), row.kind) << row.sender;
    EXPECT_EQ(CoverageOf(KindOf(message)), Coverage::kInCell) << row.sender;
    message.agent_id = "eph-1f0c";
    EXPECT_EQ(KindOf(message), TaskKind::kEphemeral) << row.sender;
  }
}

TEST(BusMessageTest, MessagesForOneAgentBecomeOneTaskUpToFive) {
  std::vector<BusMessage> messages;
  for (const char* agent : {"a", "b", "a", "a", "a", "a", "a", "b", "c"})
    messages.push_back(For(agent));
  using Groups = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(Coalesce(messages), (Groups{{0, 2, 3, 4, 5}, {6}, {1, 7}, {8}}));
  EXPECT_EQ(Coalesce({}), Groups());
  EXPECT_EQ(PromptOf({"alone"}), "alone");
  EXPECT_EQ(PromptOf({"one", "two", "three"}),
            "[Message 1] one\n\n---\n\n[Message 2] two\n\n---\n\n[Message 3] three");
}

TEST(BusMessageTest, AReplyStandsOnTheBusAsThePlatformWritesIt) {
  const WallClock::time_point time{std::chrono::microseconds{1790928930123456}};
  BusMessage message = For("a1");
  EXPECT_EQ(
      ReplyLine(EnvelopeOf(message), "m", "r", "say \"x\"\n", time),
      R"({"type":"agent_response","message_id":"r","agent_id":"a1","payload":"say \"x\"\u000a",)"
      R"("timestamp":"2026-10-02T08:15:30.123456+00:00","in_reply_to":"m",)"
      R"("delegation_depth":0,"hop_depth":0,"sender_agent":"a1"})");
  message.delegation_depth = 2;
  message.hop_depth = 3;
  message.origin_agent = "o";
  message.sender_agent = "s";
  message.turn_id = "t";
  message.session_id = "u";
  EXPECT_EQ(ReplyLine(EnvelopeOf(message), "m", "r", "y", time),
            R"({"type":"agent_response","message_id":"r","agent_id":"a1","payload":"y",)"
            R"("timestamp":"2026-10-02T08:15:30.123456+00:00","in_reply_to":"m",)"
            R"("delegation_depth":2,"hop_depth":3,"origin_agent":"o","sender_agent":"a1",)"
            R"("turn_id":"t","session_id":"u"})");
}

}  // namespace
}  // namespace taskcell::gateway
