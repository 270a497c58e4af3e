#include "gateway/egress/refusal.h"

#include <gtest/gtest.h>

#include <string>

namespace taskcell::gateway {
namespace {

bool SaysItIsFinal(const Refusal& refusal) {
  return RefusalHeaders(refusal).find("x-should-retry: false\r\n") != std::string::npos;
}

TEST(RefusalTest, WhatAskingAgainCannotHelpSaysSo) {
  for (int status : {400, 403, 404, 405, 413, 431}) {
    const Refusal refusal{status, "egress_test", "no"};
    EXPECT_TRUE(SaysItIsFinal(refusal)) << status;
    EXPECT_EQ(RefusalStatus(WireApi::kOpenAiResponses, refusal), 400);
    EXPECT_EQ(RefusalStatus(WireApi::kOpenAiChat, refusal), status);
  }
}

TEST(RefusalTest, WhatMayWorkTheNextTimeIsNotToldAsFinal) {
  for (int status : {408, 500, 502, 503, 504}) {
    const Refusal refusal{status, "egress_test", "not now"};
    EXPECT_FALSE(SaysItIsFinal(refusal)) << status;
    EXPECT_EQ(RefusalStatus(WireApi::kOpenAiResponses, refusal), status);
  }
}

}  // namespace
}  // namespace taskcell::gateway
