#include <algorithm>
#include <map>
#include <string>

#include "gateway/runtimes/event_reader.h"
#include "gateway/runtimes/tool_names.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// Our hook's refusal of a forbidden tool begins with this.
constexpr std::string_view kDeniedByHook = "tool call denied by pre-tool hook";
constexpr std::size_t kMaxSteps = 10'000;

const JsonValue& Inner(const JsonValue& event, std::string_view key) {
  const JsonValue* inner = event.Find(key);
  return inner != nullptr && inner->is_object() ? *inner : event;
}

class AntigravityEvents : public EventReader {
 public:
  void Take(const JsonValue& event, RunFacts& facts) override {
    std::string_view kind = event.String("event");
    if (kind == "step_update") {
      Step(Inner(event, "step_update"), facts);
    } else if (kind == "result") {
      Final(Inner(event, "result"), facts);
    } else if (kind.empty() &&
               (event.Find("response") != nullptr || event.Find("error") != nullptr)) {
      Final(event, facts);  // --output-format json: one object, no events
    }
  }

  void End(RunFacts& facts) override { StillPending(facts); }

 private:
  void Step(const JsonValue& step, RunFacts& facts) {
    std::string index(step.Find("step_index") == nullptr ? "" : step.Find("step_index")->text);
    const JsonValue* info = step.Find("tool_info");
    std::string_view tool = step.String("tool_name");
    if (tool.empty() && info != nullptr) tool = info->String("name");
    if (!tool.empty()) Tool(tool, index, step, facts);
    if (step.String("step_type") != "agent_response") return;
    std::string& text = texts_[index];
    if (text.size() + step.String("text_delta").size() <= kMaxTranscriptBytes) {
      text += step.String("text_delta");
    }
    if (!Trim(text).empty()) facts.last_text = text;
    if (step.String("state") == "DONE") ++facts.steps;
    if (texts_.size() > kMaxSteps) texts_.clear();
  }

  // A forbidden tool that is under way is pending until our hook's refusal shows; anything else
  // means that it ran.
  void Tool(std::string_view tool, const std::string& index, const JsonValue& step,
            RunFacts& facts) {
    facts.used_tool = true;
    if (std::find(kAntigravityTools.begin(), kAntigravityTools.end(), tool) !=
        kAntigravityTools.end())
      return;
    std::string_view state = step.String("state");
    if (state == "ACTIVE" && pending_.size() < kMaxSteps) {
      pending_[index] = tool;
      return;
    }
    const JsonValue* info = step.Find("tool_info");
    const JsonValue* error = info == nullptr ? nullptr : info->Find("error");
    bool denied = state == "ERROR" && error != nullptr &&
                  error->String("message").substr(0, kDeniedByHook.size()) == kDeniedByHook;
    if (!denied) facts.Violate(tool);
    pending_.erase(index);
  }

  void Final(const JsonValue& result, RunFacts& facts) {
    StillPending(facts);
    facts.has_result = true;
    facts.result_text = result.String("response");
    std::string_view status = result.String("status");
    const JsonValue* error = result.Find("error");
    bool has_error = error != nullptr && error->kind != JsonKind::kNull;
    facts.is_error = has_error || (!status.empty() && status != "SUCCESS");
    if (has_error) {
      facts.AddError(error->text);
      facts.AddError(error->String("message"));
      uint64_t code = error->Unsigned("code");
      if (code == 429 || code == 402) facts.rate_marker = true;
      if (code == 401 || code == 403) facts.auth_marker = true;
    }
    const JsonValue* usage = result.Find("usage");
    if (usage == nullptr || !usage->is_object()) return;
    facts.usage = {true, usage->Unsigned("input_tokens"), usage->Unsigned("output_tokens"), 0};
  }

  void StillPending(RunFacts& facts) {
    if (!pending_.empty()) facts.Violate(pending_.begin()->second);
    pending_.clear();
  }

  std::map<std::string, std::string> texts_;    // by step
  std::map<std::string, std::string> pending_;  // forbidden tools under way, by step
};

}  // namespace

std::unique_ptr<EventReader> MakeAntigravityEvents() {
  return std::make_unique<AntigravityEvents>();
}

}  // namespace taskcell::gateway
