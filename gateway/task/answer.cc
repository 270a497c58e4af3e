#include "gateway/task/answer.h"

#include <algorithm>
#include <array>

#include "gateway/task/public_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::array<std::string_view, 10> kUnavailableCodes = {
    "invalid_config",       "unsupported_runtime", "network_disabled", "root_user",
    "unsupported_platform", "docker_unreachable",  "image_missing",    "resource_limits_unenforced",
    "no_account",           "engine_unsupported"};

// A task that was meant not to run: nothing of the sandbox is at fault.
bool IsNotRun(std::string_view code) {
  return code == "skipped" || code == "cell_required" || code == "team_round_refused";
}

// What was asked for makes no sense.
bool IsRequestAtFault(std::string_view code) {
  return code == "invalid_prompt" || code == "agent_not_found" || code == "unknown_kind" ||
         code == "unknown_role" || code == "invalid_input";
}

// The guide's form of a message.
std::string Framed(std::string_view code, std::string_view text) {
  if (!IsUnavailable(code)) return std::string(text);
  return Text("Task sandbox unavailable (", code,
              "): ", code == "invalid_config" ? "the sandbox configuration is invalid: " : "",
              text);
}

constexpr std::string_view kMark = "<redacted>";

std::string RedactGoogleKeys(std::string text) {
  constexpr std::string_view kBegin = "AIza";
  constexpr std::string_view kRest =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  constexpr std::size_t kShortestRest = 30;
  for (std::size_t at = text.find(kBegin); at != std::string::npos;) {
    const std::size_t rest = at + kBegin.size();
    const std::size_t end = std::min(text.find_first_not_of(kRest, rest), text.size());
    const bool is_key = end - rest >= kShortestRest;
    if (is_key) text.replace(at, end - at, kMark);
    at = text.find(kBegin, is_key ? at + kMark.size() : rest);
  }
  return text;
}

}  // namespace

bool IsUnavailable(std::string_view code) {
  return std::find(kUnavailableCodes.begin(), kUnavailableCodes.end(), code) !=
         kUnavailableCodes.end();
}

std::string_view OutcomeWord(std::string_view code) {
  if (code == "ok") return "success";
  if (IsUnavailable(code) || IsNotRun(code) || IsRequestAtFault(code)) return "refused";
  for (std::string_view turned_away : {"queue_full", "gateway_stopping", "too_many_clients"})
    if (code == turned_away) return "refused";
  if (code == "timeout") return "timed_out";
  if (code == "stopped") return "cancelled";
  for (std::string_view same : {"auth_failed", "rate_limited", "tool_violation", "step_limit"})
    if (code == same) return same;
  return "failed";
}

int ExitStatus(std::string_view code) {
  constexpr int kFailed = 1;
  constexpr int kUsage = 2;
  constexpr int kRefused = 3;
  constexpr int kGatewayLost = 4;
  constexpr int kTimedOut = 124;
  constexpr int kCancelled = 130;
  if (code == "ok") return 0;
  if (IsRequestAtFault(code)) return kUsage;
  if (OutcomeWord(code) == "refused") return kRefused;
  if (code == "gateway_lost" || code == "interrupted") return kGatewayLost;
  if (code == "timeout") return kTimedOut;
  if (code == "stopped") return kCancelled;
  return kFailed;
}

TaskAnswer AnswerFor(const Error& error) {
  TaskAnswer answer;
  answer.code = error.code.empty() ? "internal_error" : std::string(error.code);
  answer.message = OneLine(Framed(answer.code, PublicText(error)), kMaxMessageBytes);
  answer.detail = OneLine(Redact(error.text, ""), kMaxDetailBytes);
  return answer;
}

TaskAnswer AnswerOf(Verdict verdict) {
  TaskAnswer answer;
  if (!verdict.code.empty()) answer.code = verdict.code;
  answer.message = OneLine(Framed(answer.code, verdict.message), kMaxMessageBytes);
  answer.detail = OneLine(verdict.detail, kMaxDetailBytes);
  answer.reply = std::move(verdict.reply);
  answer.step_limit = verdict.step_limit;
  return answer;
}

std::string DelegationReply(const TaskAnswer& answer) {
  if (answer.reply.has_value()) return *answer.reply;
  if (answer.for_host || IsNotRun(answer.code))
    return Text("⚠️ 子任務處理失敗：", answer.message, "。請稍後再試或改寫指令。");
  if (IsUnavailable(answer.code))
    return Text("⚠️ 子任務未執行（任務沙箱）：", answer.message);
  return Text("⚠️ 子任務失敗（任務沙箱，", answer.code, "）：", answer.message);
}

std::string OneLine(std::string_view text, std::size_t limit) {
  constexpr std::string_view kMark = "...";
  std::string line;
  for (std::string_view word : Words(text)) line += line.empty() ? Text(word) : Text(" ", word);
  if (line.size() <= limit) return line;
  std::size_t end = limit - kMark.size();
  constexpr unsigned char kContinuationMask = 0xC0;
  constexpr unsigned char kContinuation = 0x80;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & kContinuationMask) == kContinuation)
    --end;
  return Text(std::string_view(line).substr(0, end), kMark);
}

std::string Redact(std::string text, std::string_view secret) {
  constexpr std::size_t kShortest = 8;
  text = RedactGoogleKeys(std::move(text));
  if (secret.size() < kShortest) return text;
  for (std::size_t at = text.find(secret); at != std::string::npos;
       at = text.find(secret, at + kMark.size()))
    text.replace(at, secret.size(), kMark);
  return text;
}

}  // namespace taskcell::gateway
