#include "gateway/runtimes/loop/run.h"

#include "gateway/runtimes/loop/chat.h"
#include "gateway/runtimes/loop/tools.h"
#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::gateway::loop {
namespace {

// Tool inputs and results are shown in events up to here, so that a long run stays inside the
// transcript's bound; the model gets them whole.
constexpr std::size_t kMaxShownBytes = 256;

// The start of a text, cut between characters.
std::string_view Shown(std::string_view text) {
  if (text.size() <= kMaxShownBytes) return text;
  std::size_t end = kMaxShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

class Loop {
 public:
  Loop(const LoopTask& task, const LoopPorts& ports)
      : task_(task), ports_(ports), conversation_(task.model, task.prompt) {}

  Result<bool> Run() {
    JsonText init;
    init.Open('{').Key("type").String("system").Key("subtype").String("init");
    init.Key("model").String(task_.model).Key("tools").Open('[');
    init.String("read_file").String("write_file").String("list_directory").String("shell");
    TRY(ports_.tell(init.Close(']').Close('}').text()));
    while (turns_ < task_.max_turns) {
      if (conversation_.bytes() > kMaxConversationBytes) {
        return Fail("the conversation is over 31 MiB; give the task smaller files");
      }
      Result<HttpAnswer> answer = ports_.ask(conversation_.Request());
      ++turns_;
      if (!answer.ok()) return Fail(answer.error().text);
      if (answer->status != 200) return FailHttp(answer.value());
      Result<ChatAnswer> chat = ParseChatAnswer(answer->body);
      if (!chat.ok()) return Fail(chat.error().text);
      Result<State> state = TakeAnswer(chat.value());
      if (!state.ok()) return std::move(state).error();
      if (state.value() != State::kGoOn) return state.value() == State::kReplied;
    }
    return EndAtLimit();
  }

 private:
  enum class State : uint8_t { kGoOn, kReplied, kFailed };

  Result<State> TakeAnswer(const ChatAnswer& answer) {
    input_tokens_ += answer.input_tokens;
    output_tokens_ += answer.output_tokens;
    TRY(TellAssistant(answer));
    if (answer.finish == Finish::kContentFilter) {
      return Failed(Fail("the provider's content filter stopped the answer"));
    }
    if (!answer.calls.empty()) return DoCalls(answer);
    // The model meant to call a tool and none came through. The conversation must not end with its
    // own message: servers refuse that.
    if (answer.finish == Finish::kToolCalls) {
      return TryAgain(answer, "No tool call arrived. Call the tool again, or answer.");
    }
    if (Trim(answer.text).empty()) {
      return Failed(Fail(answer.finish == Finish::kLength
                             ? "the answer was cut at max_tokens before any text"
                             : "the model answered nothing"));
    }
    TRY(TellResult("success", answer.text, "", 0));
    return State::kReplied;
  }

  Result<State> TryAgain(const ChatAnswer& answer, std::string_view why) {
    if (++useless_ > kMaxUselessAnswers) {
      return Failed(Fail("the model kept asking for tools without a usable call"));
    }
    if (!answer.text.empty()) conversation_.AddAnswer(answer);
    conversation_.AddUser(why);
    return State::kGoOn;
  }

  // Does the calls and hands their results back. A call in a message that was cut is not done: its
  // arguments may be half of what was meant, and still be JSON.
  Result<State> DoCalls(const ChatAnswer& answer) {
    conversation_.AddAnswer(answer);
    bool last_turn = turns_ >= task_.max_turns;  // nobody would read the results
    bool any = false;
    for (std::size_t i = 0; i < answer.calls.size(); ++i) {
      const ToolCall& call = answer.calls[i];
      ToolResult result;
      if (answer.finish == Finish::kLength) {
        result = {"not done: the message was cut at max_tokens; make smaller calls", true};
      } else if (i >= kMaxCallsPerAnswer) {
        result = {"not done: more than 16 calls in one message", true};
      } else if (last_turn) {
        result = {"not done: the step limit is reached", true};
      } else {
        result = RunTool(call.name, call.arguments);
        any = any || IsWellFormed(call);
      }
      conversation_.AddToolResult(call.id, result.text);
      TRY(TellToolResult(call, result));
    }
    useless_ = any ? 0 : useless_ + 1;
    if (useless_ > kMaxUselessAnswers) {
      return Failed(Fail("the model kept making tool calls that cannot be done"));
    }
    return State::kGoOn;
  }

  static bool IsWellFormed(const ToolCall& call) {
    Result<JsonValue> arguments = ParseJson(Trim(call.arguments).empty() ? "{}" : call.arguments);
    return arguments.ok() && arguments->is_object();
  }

  static Result<State> Failed(Result<bool> told) {
    if (!told.ok()) return std::move(told).error();
    return State::kFailed;
  }

  Result<bool> Fail(std::string_view why) {
    TRY(TellResult("error_during_execution", "", why, 0));
    return false;
  }

  Result<bool> FailHttp(const HttpAnswer& answer) {
    std::string why = DescribeHttpError(answer.status, answer.body);
    TRY(TellResult("error_during_execution", "", why, answer.status));
    return false;
  }

  Result<bool> EndAtLimit() {
    TRY(TellResult("error_max_turns", "", Text("reached ", task_.max_turns, " turns"), 0));
    return false;
  }

  Status TellAssistant(const ChatAnswer& answer) {
    JsonText json;
    json.Open('{').Key("type").String("assistant").Key("message").Open('{');
    json.Key("role").String("assistant").Key("model").String(task_.model);
    json.Key("content").Open('[');
    if (!answer.text.empty()) {
      json.Open('{').Key("type").String("text").Key("text").String(answer.text).Close('}');
    }
    for (const ToolCall& call : answer.calls) {
      json.Open('{').Key("type").String("tool_use").Key("id").String(Shown(call.id));
      json.Key("name").String(Shown(call.name));
      json.Key("input").Open('{').Key("arguments").String(Shown(call.arguments));
      json.Close('}').Close('}');
    }
    return ports_.tell(json.Close(']').Close('}').Close('}').text());
  }

  Status TellToolResult(const ToolCall& call, const ToolResult& result) {
    JsonText json;
    json.Open('{').Key("type").String("user").Key("message").Open('{');
    json.Key("role").String("user").Key("content").Open('[').Open('{');
    json.Key("type").String("tool_result").Key("tool_use_id").String(Shown(call.id));
    json.Key("content").String(Shown(result.text)).Key("is_error").Bool(result.is_error);
    return ports_.tell(json.Close('}').Close(']').Close('}').Close('}').text());
  }

  Status TellResult(std::string_view subtype, std::string_view text, std::string_view error,
                    int http_status) {
    JsonText json;
    json.Open('{').Key("type").String("result").Key("subtype").String(subtype);
    json.Key("is_error").Bool(subtype != "success").Key("num_turns").Unsigned(turns_);
    if (subtype == "success") json.Key("result").String(text);
    if (!error.empty()) json.Key("error").String(error);
    if (http_status != 0) json.Key("api_error_status").Number(http_status);
    json.Key("usage").Open('{').Key("input_tokens").Unsigned(input_tokens_);
    json.Key("output_tokens").Unsigned(output_tokens_).Close('}');
    return ports_.tell(json.Close('}').text());
  }

  const LoopTask& task_;
  const LoopPorts& ports_;
  Conversation conversation_;
  uint64_t turns_ = 0;
  unsigned useless_ = 0;
  uint64_t input_tokens_ = 0;
  uint64_t output_tokens_ = 0;
};

}  // namespace

Result<bool> RunLoop(const LoopTask& task, const LoopPorts& ports) {
  return Loop(task, ports).Run();
}

}  // namespace taskcell::gateway::loop
