#include "gateway/api/metrics.h"

#include <gtest/gtest.h>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

TEST(MetricsTest, LabelsAreEscapedAsTheFormatAsks) {
  EXPECT_EQ(LabelValue("plain.id-1"), "plain.id-1");
  EXPECT_EQ(LabelValue("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
  EXPECT_EQ(LabelValue("\x1b[31m\xff\x7f"), "?[31m??");
  EXPECT_EQ(LabelValue("沙箱"), "沙箱");
}

TEST(MetricsTest, CodesAreBoundedAndUsageIsSummed) {
  Metrics metrics;
  TaskUsage usage;
  usage.input_tokens = 10;
  usage.cached_tokens = 4;
  usage.output_tokens = 2;
  usage.microcents = 250'000;
  usage.bytes_up = 3;
  usage.refused = 1;
  for (std::size_t i = 0; i < kMaxMetricCodes + 10; ++i)
    metrics.Count({TaskState::kFailed, Text("code", i), 1500, 20000}, usage);
  const std::string text = metrics.Text({});
  std::size_t series = 0;
  for (std::string_view line : Split(text, '\n'))
    if (line.starts_with("taskcell_tasks_total{")) ++series;
  EXPECT_EQ(series, kMaxMetricCodes + 1);
  for (std::string_view line :
       {"taskcell_tasks_total{state=\"failed\",code=\"other\"} 10\n",
        "taskcell_tokens_total{kind=\"input\"} 444\n",
        "taskcell_tokens_total{kind=\"cached_input\"} 296\n",
        "taskcell_tokens_total{kind=\"output\"} 148\n", "taskcell_cost_cents_total 18.500000\n",
        "taskcell_egress_bytes_total{direction=\"up\"} 222\n", "taskcell_egress_refused_total 74\n",
        "taskcell_task_wait_seconds_bucket{le=\"1\"} 0\n",
        "taskcell_task_wait_seconds_bucket{le=\"5\"} 74\n",
        "taskcell_task_duration_seconds_bucket{le=\"15\"} 0\n",
        "taskcell_task_duration_seconds_bucket{le=\"60\"} 74\n",
        "taskcell_task_duration_seconds_sum 1480.000000\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace taskcell::gateway
