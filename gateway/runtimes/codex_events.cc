#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "gateway/runtimes/event_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::array<std::string_view, 4> kNoTools = {"agent_message", "reasoning", "todo_list",
                                                      "error"};
constexpr std::array<std::string_view, 2> kTools = {"command_execution", "file_change"};

template <std::size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

class CodexEvents : public EventReader {
 public:
  void Take(const JsonValue& event, RunFacts& facts) override {
    std::string_view type = event.String("type");
    if (type == "item.started" || type == "item.updated" || type == "item.completed") {
      const JsonValue* item = event.Find("item");
      Item(item == nullptr ? JsonValue() : *item, type == "item.completed", facts);
    } else if (type == "turn.completed") {
      facts.has_result = true;
      facts.is_error = false;
      passing_errors_.clear();  // "Reconnecting... 1/5": the turn went on
      facts.result_text = facts.last_text;
      TakeUsage(event, facts);
    } else if (type == "turn.failed") {
      facts.has_result = true;
      facts.is_error = true;
      const JsonValue* error = event.Find("error");
      if (error != nullptr) facts.AddError(error->String("message"));
    } else if (type == "error") {
      if (passing_errors_.size() < kMaxPassingErrorBytes) {
        passing_errors_ += Text(event.String("message"), "\n");
      }
    }
  }

  void End(RunFacts& facts) override {
    if (!facts.has_result || facts.is_error) facts.AddError(Trim(passing_errors_));
  }

 private:
  static constexpr std::size_t kMaxPassingErrorBytes = 16U << 10U;

  void Item(const JsonValue& item, bool completed, RunFacts& facts) {
    std::string_view type = item.String("type");
    if (type.empty()) type = item.String("item_type");  // the older vocabulary
    if (type == "assistant_message") type = "agent_message";
    if (type == "agent_message" && completed) {
      if (!Trim(item.String("text")).empty()) facts.last_text = item.String("text");
    } else if (IsOneOf(kTools, type)) {
      facts.used_tool = true;
      // An item without an id is counted each time: better too many than too few.
      std::string_view id = item.String("id");
      if (id.empty() || seen_.emplace(id).second) ++facts.steps;
    } else if (!IsOneOf(kNoTools, type)) {
      facts.Violate(type);
    }
  }

  static void TakeUsage(const JsonValue& event, RunFacts& facts) {
    const JsonValue* usage = event.Find("usage");
    if (usage == nullptr || !usage->is_object()) return;
    facts.usage.seen = true;
    facts.usage.input += usage->Unsigned("input_tokens");
    facts.usage.output += usage->Unsigned("output_tokens");
    facts.usage.cached_input += usage->Unsigned("cached_input_tokens");
  }

  std::set<std::string, std::less<>> seen_;  // ids of tool items
  std::string passing_errors_;
};

}  // namespace

std::unique_ptr<EventReader> MakeCodexEvents() { return std::make_unique<CodexEvents>(); }

}  // namespace taskcell::gateway
