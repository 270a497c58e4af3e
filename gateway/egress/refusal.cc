#include "gateway/egress/refusal.h"

#include <utility>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// What failed on the way, or came too slowly, may work the next time.
bool IsFinal(const Refusal& refusal) {
  constexpr int kTooSlow = 408;
  constexpr int kFirstPassing = 500;
  return refusal.status != kTooSlow && refusal.status < kFirstPassing;
}

// The type each API gives an error of this status; programs decide by it whether to retry.
std::string_view ErrorType(int status) {
  if (status == 404) return "not_found_error";
  if (status == 413) return "request_too_large";
  if (status == 429) return "rate_limit_error";
  if (status >= 500) return "api_error";
  return status == 403 ? "permission_error" : "invalid_request_error";
}

}  // namespace

Refusal Exhausted(std::string_view code, std::string message) {
  constexpr int kForbidden = 403;
  return {kForbidden, code, std::move(message)};
}

int RefusalStatus(WireApi api, const Refusal& refusal) {
  constexpr int kBadRequest = 400;
  return api == WireApi::kOpenAiResponses && IsFinal(refusal) ? kBadRequest : refusal.status;
}

std::string RefusalHeaders(const Refusal& refusal) {
  return Text("x-taskcell-egress: ", refusal.code, "\r\n",
              IsFinal(refusal) ? "x-should-retry: false\r\n" : "");
}

std::string RefusalBody(WireApi api, const Refusal& refusal) {
  std::string message = Text(refusal.message, " (", refusal.code, ")");
  JsonText json;
  json.Open('{');
  if (api == WireApi::kAnthropicMessages) {
    json.Key("type").String("error").Key("error").Open('{');
    json.Key("type").String(ErrorType(refusal.status));
    json.Key("message").String(message);
    json.Key("code").String(refusal.code).Close('}');
  } else {
    json.Key("error").Open('{').Key("message").String(message);
    json.Key("type").String(ErrorType(refusal.status));
    json.Key("param").Null().Key("code").String(refusal.code).Close('}');
  }
  json.Close('}');
  return json.text();
}

std::string_view StatusPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace taskcell::gateway
