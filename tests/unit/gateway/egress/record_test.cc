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
