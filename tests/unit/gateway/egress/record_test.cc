#include "gateway/egress/record.h"

#include <gtest/gtest.h>

namespace taskcell::gateway {
namespace {

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(RecordJsonTest, ShowsFiveHundredRequestsAndCountsTheRest) {
  EgressRecord record;
  record.requests.resize(kEgressRequestsShown);
  std::string fits = RecordJson(record);
  EXPECT_EQ(Count(fits, "\"method\""), kEgressRequestsShown);
  EXPECT_NE(fits.find("\"requests_omitted\":0,"), std::string::npos);
  record.requests.resize(kEgressRequestsShown + 1);
  std::string over = RecordJson(record);
  EXPECT_EQ(Count(over, "\"method\""), kEgressRequestsShown);
  EXPECT_NE(over.find("\"requests_omitted\":1,"), std::string::npos);
}

TEST(RefusalsTest, AFloodOfOneKindHidesNoOther) {
  EgressRecord record;
  for (int count = 0; count < 500; ++count) CountRefusal("one.example", "egress_host", record);
  for (int count = 0; count < 500; ++count)
    CountRefusal(std::to_string(count), "egress_path", record);
  CountRefusal("late.example:443", "egress_host", record);
  CountRefusal("late.example:443", "egress_sni", record);
  // 16 hosts by name and the rest together of the second reason.
  ASSERT_EQ(record.refusals.size(), 1 + kEgressRefusedHosts + 1 + 2);
  EXPECT_EQ(record.refusals[0].count, 500U);
  EXPECT_EQ(record.refusals[kEgressRefusedHosts].host, "15");
  const EgressRefusal& further = record.refusals[kEgressRefusedHosts + 1];
  EXPECT_EQ(further.host, "*");
  EXPECT_EQ(further.count, 500U - kEgressRefusedHosts);
  const std::string json = RecordJson(record);
  for (const char* row : {R"("refusals":[{"host":"one.example","code":"egress_host","count":500},)",
                          R"({"host":"late.example:443","code":"egress_host","count":1})",
                          R"({"host":"late.example:443","code":"egress_sni","count":1}])"})
    EXPECT_NE(json.find(row), std::string::npos) << row << '\n' << json;
}

TEST(RecordJsonTest, QuotesWhatCameFromOutside) {
  EgressRecord record;
  record.requests.resize(1);
  record.requests[0].path = "/\"x\\";
  record.tools_called = {"a\"b"};
  std::string text = RecordJson(record);
  EXPECT_NE(text.find(R"("path":"/\"x\\")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("tools_called":["a\"b"])"), std::string::npos) << text;
}

}  // namespace
}  // namespace taskcell::gateway
