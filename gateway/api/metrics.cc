#include "gateway/api/metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// A part of `whole` of which one has `unit`, as a decimal number.
std::string Fraction(int64_t whole, int64_t unit) {
  std::array<char, 64> text;
  const int length = std::snprintf(text.data(), text.size(), "%.6f",
                                   static_cast<double>(whole) / static_cast<double>(unit));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

constexpr int64_t kMillis = 1000;
constexpr int64_t kMicrocents = 1'000'000;

int64_t Signed(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

void Head(std::string_view name, std::string_view type, std::string_view help, std::string& text) {
  text += Text("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void One(std::string_view name, std::string_view type, std::string_view help,
         std::string_view value, std::string& text) {
  Head(name, type, help, text);
  text += Text(name, " ", value, "\n");
}

void PutUsage(const TaskUsage& usage, std::string& text) {
  Head("taskcell_egress_bytes_total", "counter", "Bytes between cells and their providers.", text);
  text += Text("taskcell_egress_bytes_total{direction=\"up\"} ", usage.bytes_up,
               "\ntaskcell_egress_bytes_total{direction=\"down\"} ", usage.bytes_down, "\n");
  One("taskcell_egress_requests_total", "counter", "Requests and tunnels cells asked for.",
      std::to_string(usage.requests), text);
  One("taskcell_egress_refused_total", "counter", "Those that the broker refused.",
      std::to_string(usage.refused), text);
  Head("taskcell_tokens_total", "counter", "Tokens that providers told of.", text);
  const uint64_t plain =
      usage.input_tokens -
      std::min(usage.input_tokens, usage.cached_tokens + usage.cache_write_tokens);
  for (const auto& [kind, tokens] : std::initializer_list<std::pair<std::string_view, uint64_t>>{
           {"input", plain},
           {"cached_input", usage.cached_tokens},
           {"cache_write", usage.cache_write_tokens},
           {"output", usage.output_tokens}})
    text += Text("taskcell_tokens_total{kind=\"", kind, "\"} ", tokens, "\n");
  One("taskcell_cost_cents_total", "counter", "Cost of the calls whose price is known.",
      Fraction(Signed(usage.microcents), kMicrocents), text);
  One("taskcell_unpriced_calls_total", "counter", "Calls of models without a price.",
      std::to_string(usage.unpriced_calls), text);
}

void PutAccounts(const std::vector<ListedAccount>& accounts, std::string& text) {
  std::string spent;
  std::string budget;
  std::set<std::string> told;  // an id may stand twice in a configuration, a series may not
  for (const ListedAccount& account : accounts) {
    if (!told.insert(account.id).second) continue;
    const std::string label = Text("{account=\"", LabelValue(account.id), "\"} ");
    spent += Text("taskcell_account_spent_cents", label,
                  Fraction(account.spent_microcents, kMicrocents), "\n");
    if (account.budget_cents.has_value())
      budget += Text("taskcell_account_budget_cents", label, *account.budget_cents, "\n");
  }
  Head("taskcell_account_spent_cents", "gauge", "What the account paid this month.", text);
  text += spent;
  Head("taskcell_account_budget_cents", "gauge", "What it may pay in a month.", text);
  text += budget;
}

}  // namespace

std::string LabelValue(std::string_view value) {
  std::string label;
  while (!value.empty()) {
    const std::size_t length = Utf8SequenceLength(value);
    const auto first = static_cast<unsigned char>(value.front());
    constexpr unsigned char kSpace = 0x20;
    constexpr unsigned char kDelete = 0x7f;
    if (first == '\n') {
      label += "\\n";
    } else if (first == '"' || first == '\\') {
      label += Text('\\', value.front());
    } else if (length == 0 || first < kSpace || first == kDelete) {
      label += '?';
    } else {
      label += value.substr(0, length);
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return label;
}

void Metrics::Histogram::Take(int64_t ms) {
  for (std::size_t i = 0; i < kBucketsS.size(); ++i)
    if (ms <= kBucketsS[i] * kMillis) ++below[i];
  ++count;
  sum_ms += ms;
}

void Metrics::Histogram::Put(std::string_view name, std::string_view help,
                             std::string& text) const {
  Head(name, "histogram", help, text);
  for (std::size_t i = 0; i < kBucketsS.size(); ++i)
    text += taskcell::Text(name, "_bucket{le=\"", kBucketsS[i], "\"} ", below[i], "\n");
  text += taskcell::Text(name, "_bucket{le=\"+Inf\"} ", count, "\n", name, "_sum ",
                         Fraction(sum_ms, kMillis), "\n", name, "_count ", count, "\n");
}

void Metrics::Count(const Ended& task, const TaskUsage& usage) {
  std::lock_guard lock(mutex_);
  std::pair<std::string, std::string> key(TaskStateName(task.state), task.code);
  if (tasks_.size() >= kMaxMetricCodes && !tasks_.contains(key)) key.second = "other";
  ++tasks_[std::move(key)];
  waited_.Take(std::max<int64_t>(task.waited_ms, 0));
  if (task.ran_ms > 0) ran_.Take(task.ran_ms);
  Add(usage, usage_);
}

std::string Metrics::Text(const Now& now) const {
  std::lock_guard lock(mutex_);
  std::string text;
  Head("taskcell_info", "gauge", "The version that runs.", text);
  text += "taskcell_info{version=\"" TASKCELL_VERSION "\"} 1\n";
  Head("taskcell_tasks_total", "counter", "Tasks that ended, by state and code.", text);
  for (const auto& [key, count] : tasks_)
    text += taskcell::Text("taskcell_tasks_total{state=\"", LabelValue(key.first), "\",code=\"",
                           LabelValue(key.second), "\"} ", count, "\n");
  One("taskcell_tasks_running", "gauge", "Tasks that run.", std::to_string(now.running), text);
  One("taskcell_tasks_waiting", "gauge", "Tasks that wait for their turn.",
      std::to_string(now.waiting), text);
  waited_.Put("taskcell_task_wait_seconds", "How long tasks that ended had waited.", text);
  ran_.Put("taskcell_task_duration_seconds", "How long tasks that ended had run.", text);
  PutUsage(usage_, text);
  PutAccounts(now.accounts, text);
  return text;
}

}  // namespace taskcell::gateway
