#include "probe/live/payload.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace taskcell::live {
namespace {

TEST(AttemptTest, EveryPayloadComesBackFromItsWord) {
  for (Payload payload : kPayloads) {
    Attempt attempt{payload, 4096};
    if (payload == Payload::kTmpfs) attempt.target = "/with:colon";
    Result<Attempt> back = ParseAttempt(Word(attempt));
    ASSERT_TRUE(back.ok()) << back.error().text;
    EXPECT_EQ(back->payload, payload);
    EXPECT_EQ(back->limit, 4096U);
    EXPECT_EQ(back->target, attempt.target);
  }
}

TEST(AttemptTest, WhatIsNoAttemptIsRefused) {
  for (const char* word :
       {"", "pids", "pids:", "pids:0", "pids:-1", "pids:x", "pids:1:2", ":1", "fork:1", "tmpfs:1",
        "tmpfs:1:", "tmpfs:1:tmp", "tmpfs::/tmp", "pids:1099511627777"}) {
    Result<Attempt> attempt = ParseAttempt(word);
    ASSERT_FALSE(attempt.ok()) << word;
    EXPECT_EQ(attempt.error().kind, Kind::kUsage);
  }
  EXPECT_TRUE(ParseAttempt("pids:1099511627776").ok());
}

TEST(FindingTest, ComesBackFromItsLine) {
  Finding finding{Payload::kTmpfs, "/a \"b\"", 123456, ENOSPC, 9, 77};
  std::string line = Line(finding);
  EXPECT_EQ(line.find('\n'), line.npos);
  Result<Finding> back = ParseFinding(line);
  ASSERT_TRUE(back.ok()) << back.error().text;
  EXPECT_EQ(back->payload, Payload::kTmpfs);
  EXPECT_EQ(back->target, "/a \"b\"");
  EXPECT_EQ(back->reached, 123456U);
  EXPECT_EQ(back->err, ENOSPC);
  EXPECT_EQ(back->signal, 9);
  EXPECT_EQ(back->wall_us, 77U);
}

TEST(FindingTest, WhatIsNoLineIsRefused) {
  for (const char* line :
       {"", "x", "[]", "{}", "{\"payload\":\"fork\",\"reached\":1}", "{\"payload\":\"pids\"}",
        "{\"payload\":\"pids\",\"reached\":1,\"errno\":4294967296}",
        "{\"payload\":\"pids\",\"reached\":1} {}"}) {
    EXPECT_FALSE(ParseFinding(line).ok()) << line;
  }
}

}  // namespace
}  // namespace taskcell::live
