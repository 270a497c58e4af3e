#include "gateway/egress/answer_reader.h"

#include <nlohmann/json.hpp>

#include "gateway/egress/judge_rules.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kToolsCalled = 64;  // in one answer
constexpr std::size_t kWordBytes = 64;
constexpr int kDepth = 64;                // nesting of an answer or event
constexpr std::size_t kValues = 100'000;  // roughly, counted by commas and brackets

// False for a text that would cost much more to parse than to send.
bool IsCheap(std::string_view text) {
  int depth = 0;
  std::size_t values = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == '{' || c == '[' || c == ',') ++values;
    if (depth > kDepth || values > kValues) return false;
  }
  return true;
}

const Json& At(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

void SetWord(const Json& object, const char* key, std::string* word) {
  std::string_view value = StringAt(object, key);
  if (!value.empty()) *word = Shown(value, kWordBytes);
}

void SetCount(const Json& object, const char* key, uint64_t* count) {
  const Json& value = At(object, key);
  if (value.is_number_unsigned()) *count = value.get<uint64_t>();
}

void AddTool(const Json& call, AnswerFacts* facts) {
  std::string_view name = StringAt(call, "name");
  if (name.empty()) name = StringAt(call, "type");
  if (!name.empty() && facts->tools_called.size() < kToolsCalled)
    facts->tools_called.push_back(Shown(name, kWordBytes));
}

void ReadError(const Json& document, AnswerFacts* facts) {
  const Json& error = At(document, "error");
  SetWord(error, "type", &facts->error_type);
  // OpenAI says "insufficient_quota" and "model_not_found" in code; it is the finer word.
  SetWord(error, "code", &facts->error_type);
}

// Input tokens read from the provider's cache are input all the same.
void ReadMessagesUsage(const Json& usage, AnswerFacts* facts) {
  uint64_t plain = 0;
  uint64_t written = 0;
  uint64_t cached = 0;
  SetCount(usage, "input_tokens", &plain);
  SetCount(usage, "cache_creation_input_tokens", &written);
  SetCount(usage, "cache_read_input_tokens", &cached);
  if (plain + written + cached > 0) {
    facts->input_tokens = plain + written + cached;
    facts->cached_tokens = cached;
    facts->cache_write_tokens = written;
  }
  SetCount(usage, "output_tokens", &facts->output_tokens);
}

void ReadMessagesBlock(const Json& block, AnswerFacts* facts) {
  std::string_view type = StringAt(block, "type");
  bool is_prose = type == "text" || type == "thinking" || type == "redacted_thinking";
  if (is_prose || type.empty()) return;
  // Anything but the client's own tools is named by its type, as a violation is reported.
  if (type == "tool_use") {
    AddTool(block, facts);
  } else if (facts->tools_called.size() < kToolsCalled) {
    facts->tools_called.push_back(Shown(type, kWordBytes));
  }
}

void ReadMessages(const Json& document, AnswerFacts* facts) {
  std::string_view type = StringAt(document, "type");
  if (type == "message_start") {
    ReadMessagesUsage(At(At(document, "message"), "usage"), facts);
  } else if (type == "content_block_start") {
    ReadMessagesBlock(At(document, "content_block"), facts);
  } else if (type == "message_delta") {
    SetWord(At(document, "delta"), "stop_reason", &facts->finish);
    ReadMessagesUsage(At(document, "usage"), facts);
  } else if (type == "message") {
    const Json& content = At(document, "content");
    if (content.is_array()) {
      for (const Json& block : content) ReadMessagesBlock(block, facts);
    }
    SetWord(document, "stop_reason", &facts->finish);
    ReadMessagesUsage(At(document, "usage"), facts);
  }
}

void ReadResponseItem(const Json& item, AnswerFacts* facts) {
  std::string_view type = StringAt(item, "type");
  if (!type.empty() && type != "message" && type != "reasoning") AddTool(item, facts);
}

// A whole response object; its output is read only where no event brought it before.
void ReadResponse(const Json& response, bool with_output, AnswerFacts* facts) {
  SetWord(response, "status", &facts->finish);
  SetWord(At(response, "incomplete_details"), "reason", &facts->finish);
  ReadError(response, facts);
  const Json& usage = At(response, "usage");
  SetCount(usage, "input_tokens", &facts->input_tokens);
  SetCount(At(usage, "input_tokens_details"), "cached_tokens", &facts->cached_tokens);
  SetCount(usage, "output_tokens", &facts->output_tokens);
  const Json& output = At(response, "output");
  if (!with_output || !output.is_array()) return;
  for (const Json& item : output) ReadResponseItem(item, facts);
}

void ReadResponses(const Json& document, AnswerFacts* facts) {
  std::string_view type = StringAt(document, "type");
  if (type == "response.output_item.done") {
    ReadResponseItem(At(document, "item"), facts);
  } else if (type == "response.completed" || type == "response.failed" ||
             type == "response.incomplete") {
    ReadResponse(At(document, "response"), false, facts);
  } else if (type == "error") {
    SetWord(document, "code", &facts->error_type);
  } else if (type.empty()) {
    ReadResponse(document, true, facts);
  }
}

void ReadChatMessage(const Json& message, AnswerFacts* facts) {
  const Json& calls = At(message, "tool_calls");
  if (!calls.is_array()) return;
  for (const Json& call : calls) {
    // In a stream only the first piece of a call has its name.
    const Json& function = At(call, "function");
    if (!StringAt(function, "name").empty()) AddTool(function, facts);
  }
}

void ReadChat(const Json& document, AnswerFacts* facts) {
  const Json& choices = At(document, "choices");
  if (choices.is_array()) {
    for (const Json& choice : choices) {
      ReadChatMessage(At(choice, "message"), facts);
      ReadChatMessage(At(choice, "delta"), facts);
      SetWord(choice, "finish_reason", &facts->finish);
    }
  }
  const Json& usage = At(document, "usage");
  SetCount(usage, "prompt_tokens", &facts->input_tokens);
  SetCount(At(usage, "prompt_tokens_details"), "cached_tokens", &facts->cached_tokens);
  SetCount(usage, "completion_tokens", &facts->output_tokens);
}

}  // namespace

void AnswerReader::Take(std::string_view bytes) {
  if (!is_event_stream_) {
    if (pending_.size() + bytes.size() > kEgressEventBytes) overflows_ = true;
    if (!overflows_) pending_ += bytes;
    return;
  }
  while (!bytes.empty()) {
    std::size_t end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    if (pending_.size() + part.size() > kEgressEventBytes) {
      overflows_ = true;
      pending_.clear();
    }
    if (!overflows_) pending_ += part;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    TakeLine(pending_);
    pending_.clear();
  }
}

void AnswerReader::TakeLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (overflows_) {
    overflows_ = false;
    event_.clear();
    ++facts_.unread;
    return;
  }
  if (line.starts_with("data:")) {
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (event_.size() + line.size() <= kEgressEventBytes) event_ += line;
  } else if (line.empty() && !event_.empty()) {
    if (event_ != "[DONE]") ReadDocument(event_);
    event_.clear();
  }
}

void AnswerReader::Finish() {
  if (is_event_stream_) {
    if (!pending_.empty()) TakeLine(pending_);
    TakeLine("");
  } else if (overflows_) {
    ++facts_.unread;
  } else if (!pending_.empty()) {
    ReadDocument(pending_);
  }
  pending_.clear();
}

void AnswerReader::ReadDocument(std::string_view text) {
  Json document;
  if (IsCheap(text)) document = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!document.is_object()) {
    ++facts_.unread;
    return;
  }
  ReadError(document, &facts_);
  switch (api_) {
    case WireApi::kAnthropicMessages:
      return ReadMessages(document, &facts_);
    case WireApi::kOpenAiResponses:
      return ReadResponses(document, &facts_);
    case WireApi::kOpenAiChat:
      return ReadChat(document, &facts_);
  }
}

}  // namespace taskcell::gateway
