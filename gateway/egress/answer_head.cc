#include "gateway/egress/answer_head.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// What of an answer's headers programs use. Nothing of the account's identity, no cookies, and no
// location: redirects end at the broker.
constexpr std::string_view kAnswerHeaders[] = {
    "content-type",   "request-id",     "x-request-id",         "retry-after",
    "retry-after-ms", "x-should-retry", "openai-processing-ms", "openai-model",
};
constexpr std::string_view kAnswerHeaderPrefixes[] = {"anthropic-ratelimit-", "x-ratelimit-"};

bool IsPassedOn(std::string_view name) {
  bool has_prefix =
      std::any_of(std::begin(kAnswerHeaderPrefixes), std::end(kAnswerHeaderPrefixes),
                  [name](std::string_view prefix) { return name.starts_with(prefix); });
  return has_prefix || std::find(std::begin(kAnswerHeaders), std::end(kAnswerHeaders), name) !=
                           std::end(kAnswerHeaders);
}

}  // namespace

std::string AnswerHeaderLines(const UpstreamAnswer& answer, std::string_view secret, bool* echoes) {
  std::string lines;
  for (const HeaderField& field : answer.headers) {
    bool echoes_here = field.value.find(secret) != std::string::npos;
    *echoes = *echoes || echoes_here;
    bool is_plain = std::all_of(field.value.begin(), field.value.end(),
                                [](char c) { return c >= ' ' && c < '\x7f'; });
    if (!IsPassedOn(field.name) || !is_plain) continue;
    lines += Text(field.name, ": ", echoes_here ? "redacted" : field.value, "\r\n");
  }
  return lines;
}

std::optional<Refusal> CheckAnswer(const UpstreamAnswer& answer) {
  if (answer.status >= 300 && answer.status < 400) {
    return Refusal{502, "egress_redirect",
                   "the provider answered with a redirect; it was not followed"};
  }
  if (answer.status < 200 || answer.status > 599)
    return Refusal{502, "egress_cut", "the provider answered with an impossible status"};
  const std::string* encoding = answer.Find("content-encoding");
  if (encoding != nullptr && *encoding != "identity") {
    return Refusal{502, "egress_encoding",
                   "the provider's answer is encoded although plain text was asked for"};
  }
  return std::nullopt;
}

}  // namespace taskcell::gateway
