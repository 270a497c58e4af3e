#include "gateway/runtimes/loop/chat.h"

#include <utility>

#include "gateway/runtimes/loop/tools.h"
#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

constexpr std::size_t kMaxErrorBytes = 300;
constexpr uint64_t kMaxTokens = 4096;

Error Bad(std::string_view what) {
  return Error(Kind::kViolation, Text("the provider's answer is not understood: ", what));
}

// Content is a text, or a list of parts with texts.
std::string ContentText(const JsonValue* content) {
  if (content == nullptr) return "";
  if (content->is_string()) return content->text;
  std::string text;
  for (const JsonValue& part : content->items) text += part.String("text");
  return text;
}

void Write(const JsonValue& value, JsonText& out) {
  switch (value.kind) {
    case JsonKind::kNull:
      out.Null();
      break;
    case JsonKind::kBool:
      out.Bool(value.boolean);
      break;
    case JsonKind::kString:
    case JsonKind::kNumber:  // no tool has a number among its arguments
      out.String(value.text);
      break;
    case JsonKind::kArray:
      out.Open('[');
      for (const JsonValue& item : value.items) Write(item, out);
      out.Close(']');
      break;
    case JsonKind::kObject:
      out.Open('{');
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        out.Key(value.keys[i]);
        Write(value.items[i], out);
      }
      out.Close('}');
      break;
  }
}

ToolCall ReadCall(const JsonValue& value, std::size_t number) {
  ToolCall call;
  call.id = value.String("id");
  if (call.id.empty()) call.id = Text("call_", number);
  const JsonValue* function = value.Find("function");
  if (function == nullptr) return call;
  call.name = function->String("name");
  const JsonValue* arguments = function->Find("arguments");
  if (arguments == nullptr) return call;
  if (arguments->is_object()) {  // some servers send the object itself
    JsonText text;
    Write(*arguments, text);
    call.arguments = text.text();
  } else {
    call.arguments = arguments->text;
  }
  return call;
}

Finish ReadFinish(std::string_view reason) {
  if (reason == "length" || reason == "max_tokens") return Finish::kLength;
  if (reason == "tool_calls" || reason == "function_call") return Finish::kToolCalls;
  if (reason == "content_filter") return Finish::kContentFilter;
  return Finish::kStop;
}

}  // namespace

Result<ChatAnswer> ParseChatAnswer(std::string_view body) {
  JsonValue root = TRY(ParseJson(body).With("the provider's answer is not understood"));
  const JsonValue* choices = root.Find("choices");
  if (choices == nullptr || !choices->is_array() || choices->items.empty()) {
    return Bad(root.Find("error") != nullptr ? DescribeHttpError(200, body) : "it has no choices");
  }
  const JsonValue& choice = choices->items[0];
  const JsonValue* message = choice.Find("message");
  if (message == nullptr || !message->is_object()) return Bad("it has no message");
  ChatAnswer answer;
  answer.text = ContentText(message->Find("content"));
  if (answer.text.empty()) answer.text = message->String("refusal");
  answer.finish = ReadFinish(choice.String("finish_reason"));
  const JsonValue* calls = message->Find("tool_calls");
  if (calls != nullptr && calls->is_array()) {
    for (const JsonValue& call : calls->items) {
      answer.calls.push_back(ReadCall(call, answer.calls.size()));
    }
  }
  const JsonValue* usage = root.Find("usage");
  if (usage != nullptr) {
    answer.input_tokens = usage->Unsigned("prompt_tokens");
    answer.output_tokens = usage->Unsigned("completion_tokens");
  }
  return answer;
}

std::string DescribeHttpError(int status, std::string_view body) {
  std::string_view message = body;
  Result<JsonValue> parsed = ParseJson(body);
  std::string told;
  if (parsed.ok()) {
    const JsonValue* error = parsed->Find("error");
    if (error != nullptr) {
      told = error->is_string() ? error->text
                                : Text(error->String("code"), " ", error->String("message"));
    } else {
      told = parsed->String("message");
    }
    message = Trim(told);
  }
  return Text("the provider answered HTTP ", status, ": ",
              Printable(message.substr(0, kMaxErrorBytes)));
}

Conversation::Conversation(std::string_view model, std::string_view prompt) : model_(model) {
  AddUser(prompt);
}

void Conversation::Add(std::string_view message) {
  if (!messages_.empty()) messages_ += ',';
  messages_ += message;
}

void Conversation::AddAnswer(const ChatAnswer& answer) {
  JsonText json;
  json.Open('{').Key("role").String("assistant").Key("content");
  if (answer.text.empty() && !answer.calls.empty()) {
    json.Null();
  } else {
    json.String(answer.text);
  }
  if (!answer.calls.empty()) {
    json.Key("tool_calls").Open('[');
    for (const ToolCall& call : answer.calls) {
      Result<JsonValue> arguments = ParseJson(call.arguments);
      bool whole = arguments.ok() && arguments->is_object();
      json.Open('{').Key("id").String(call.id).Key("type").String("function");
      json.Key("function").Open('{').Key("name").String(call.name);
      json.Key("arguments").String(whole ? std::string_view(call.arguments) : "{}");
      json.Close('}').Close('}');
    }
    json.Close(']');
  }
  Add(json.Close('}').text());
}

void Conversation::AddToolResult(std::string_view call_id, std::string_view content) {
  JsonText json;
  json.Open('{').Key("role").String("tool").Key("tool_call_id").String(call_id);
  Add(json.Key("content").String(content).Close('}').text());
}

void Conversation::AddUser(std::string_view text) {
  JsonText json;
  Add(json.Open('{').Key("role").String("user").Key("content").String(text).Close('}').text());
}

std::string Conversation::Request() const {
  JsonText head;
  head.Open('{').Key("model").String(model_).Key("max_tokens").Unsigned(kMaxTokens);
  head.Key("stream").Bool(false).Key("tool_choice").String("auto");
  return Text(head.text(), ",\"tools\":", kToolDefinitions, ",\"messages\":[", messages_, "]}");
}

}  // namespace taskcell::gateway::loop
