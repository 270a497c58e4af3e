#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::gateway::loop {

struct ToolCall {
  std::string id;  // made up where the provider gave none
  std::string name;
  std::string arguments;  // as the provider wrote it, or the text of the object it gave instead
};

// Why the model stopped; spellings of other servers are mapped ("" and null are kStop).
enum class Finish : uint8_t { kStop, kLength, kToolCalls, kContentFilter };

struct ChatAnswer {
  std::string text;
  std::vector<ToolCall> calls;
  Finish finish = Finish::kStop;
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
};

// Reads the body of a successful /chat/completions answer.
Result<ChatAnswer> ParseChatAnswer(std::string_view body);

// A text for a person about an answer that is no success: the provider's own message where there
// is one, at most 300 bytes.
std::string DescribeHttpError(int status, std::string_view body);

// The conversation so far, as the provider wants it again with each request.
class Conversation {
 public:
  Conversation(std::string_view model, std::string_view prompt);

  // Adds the model's message. A call whose arguments are no JSON object is repeated with `{}`,
  // since servers refuse their own malformed calls.
  void AddAnswer(const ChatAnswer& answer);
  void AddToolResult(std::string_view call_id, std::string_view content);
  void AddUser(std::string_view text);

  // The request's body.
  std::string Request() const;
  std::size_t bytes() const { return messages_.size(); }

 private:
  void Add(std::string_view message);

  std::string model_;
  std::string messages_;
};

}  // namespace taskcell::gateway::loop
