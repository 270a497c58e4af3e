#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "gateway/runtimes/event_reader.h"
#include "gateway/runtimes/tool_names.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::array<std::string_view, 3> kHarmlessBlocks = {"text", "thinking",
                                                             "redacted_thinking"};

template <std::size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

class ClaudeEvents : public EventReader {
 public:
  explicit ClaudeEvents(ClaudeDialect dialect) : dialect_(dialect) {}

  void Take(const JsonValue& event, RunFacts& facts) override {
    std::string_view type = event.String("type");
    if (type == "assistant") {
      Assistant(event, facts);
    } else if (type == "result") {
      ResultEvent(event, facts);
    } else if (type == "error") {
      facts.AddError(event.String("message"));
      TakeErrorField(event, facts);
    } else if (type == "rate_limit_event") {
      // "allowed_warning" is a warning; only "rejected" means anything, and only if the run fails.
      const JsonValue* info = event.Find("rate_limit_info");
      rejected_ = rejected_ || (info != nullptr && info->String("status") == "rejected");
    } else if (type == "system" && event.String("subtype") == "api_retry") {
      Retry(event, facts);
    } else if (type == "system" && dialect_ == ClaudeDialect::kGrok) {
      const JsonValue* servers = event.Find("mcp_servers");
      if (servers != nullptr && !servers->items.empty()) facts.Violate("mcp_servers");
    }
  }

  void End(RunFacts& facts) override {
    // An error that the last message carried stands, whatever the final event claims: there are
    // versions that report a rejected key as a success with the error as reply.
    if (!standing_error_.empty()) {
      facts.is_error = true;
      Mark(standing_error_, facts);
      facts.AddError(standing_error_);
      facts.AddError(facts.last_text);
    }
    bool failed = !facts.has_result || facts.is_error;
    if (failed && facts.rejections > 0) facts.auth_marker = true;
    if (rejected_ && failed && !facts.turn_limit) facts.rate_marker = true;
  }

 private:
  // Seen: ten tries over minutes with a credential that is rejected each time.
  static void Retry(const JsonValue& event, RunFacts& facts) {
    const uint64_t status = event.Unsigned("error_status");
    const bool rejected =
        status == 401 || status == 403 || event.String("error") == "authentication_failed";
    facts.rejections = rejected ? facts.rejections + 1 : 0;
  }

  void Assistant(const JsonValue& event, RunFacts& facts) {
    facts.rejections = 0;
    standing_error_ = event.String("error");
    if (standing_error_.empty() && event.True("is_api_error_message")) standing_error_ = "unknown";
    const JsonValue* message = event.Find("message");
    const JsonValue* content = message == nullptr ? nullptr : message->Find("content");
    if (content == nullptr) return;
    std::string text;
    if (content->is_string()) text = content->text;
    if (content->is_array()) {
      for (const JsonValue& block : content->items) Block(block, text, facts);
    }
    if (!Trim(text).empty()) facts.last_text = std::move(text);
  }

  void Block(const JsonValue& block, std::string& text, RunFacts& facts) {
    std::string_view type = block.String("type");
    if (type == "text") {
      if (!text.empty()) text += '\n';
      text += block.String("text");
    } else if (type == "tool_use") {
      facts.UseTool(block.String("name"));
      // A call without an id is counted each time: better too many than too few.
      std::string_view id = block.String("id");
      if (id.empty() || seen_.emplace(id).second) ++facts.steps;
      if (!MayUse(block.String("name"))) facts.Violate(block.String("name"));
    } else if (!IsOneOf(kHarmlessBlocks, type)) {
      // server_tool_use, mcp_tool_use and whatever comes next: named by its type.
      facts.Violate(type);
    }
  }

  bool MayUse(std::string_view tool) const {
    switch (dialect_) {
      case ClaudeDialect::kClaude:
        return IsOneOf(kClaudeTools, tool);
      case ClaudeDialect::kGrok:
        return IsOneOf(kGrokTools, tool);
      case ClaudeDialect::kLoop:
        break;
    }
    return true;
  }

  void ResultEvent(const JsonValue& event, RunFacts& facts) {
    facts.has_result = true;
    std::string_view subtype = event.String("subtype");
    facts.turn_limit =
        subtype == "error_max_turns" || event.String("terminal_reason") == "max_turns";
    facts.is_error = event.True("is_error") || (!subtype.empty() && subtype != "success");
    if (dialect_ == ClaudeDialect::kGrok) TakeStopReason(event, facts);
    facts.result_text = event.String("result");
    TakeUsage(event, facts);
    if (!facts.is_error) return;
    uint64_t status = event.Unsigned("api_error_status");
    if (status == 401 || status == 403) facts.auth_marker = true;
    if (status == 402 || status == 429) facts.rate_marker = true;
    facts.AddError(subtype == "success" ? "" : subtype);
    facts.AddError(facts.result_text);
    TakeErrorField(event, facts);
    const JsonValue* errors = event.Find("errors");
    if (errors == nullptr || !errors->is_array()) return;
    for (const JsonValue& error : errors->items) facts.AddError(error.text);
  }

  // grok ends quietly, with status 0 and a success, when it was cancelled.
  static void TakeStopReason(const JsonValue& event, RunFacts& facts) {
    std::string_view stop = event.String("stop_reason");
    if (stop.empty()) stop = event.String("stopReason");
    if (stop == "cancelled" || stop == "refusal") facts.is_error = true;
    if (stop == "max_turn_requests") facts.turn_limit = true;
  }

  // "error" is a text in some versions and an object in others.
  static void TakeErrorField(const JsonValue& event, RunFacts& facts) {
    const JsonValue* error = event.Find("error");
    if (error == nullptr) return;
    facts.AddError(error->text);
    facts.AddError(error->String("message"));
  }

  static void TakeUsage(const JsonValue& event, RunFacts& facts) {
    const JsonValue* usage = event.Find("usage");
    if (usage == nullptr || !usage->is_object()) return;
    facts.usage.seen = true;
    facts.usage.input = usage->Unsigned("input_tokens");
    facts.usage.output = usage->Unsigned("output_tokens");
    facts.usage.cached_input = usage->Unsigned("cache_read_input_tokens");
  }

  static void Mark(std::string_view error, RunFacts& facts) {
    if (error == "authentication_failed" || error == "oauth_org_not_allowed") {
      facts.auth_marker = true;
    }
    if (error == "rate_limit" || error == "billing_error") facts.rate_marker = true;
  }

  ClaudeDialect dialect_;
  std::set<std::string, std::less<>> seen_;  // ids of tool calls
  bool rejected_ = false;
  std::string standing_error_;  // the error field of the last assistant event
};

}  // namespace

std::unique_ptr<EventReader> MakeClaudeEvents(ClaudeDialect dialect) {
  return std::make_unique<ClaudeEvents>(dialect);
}

}  // namespace taskcell::gateway
