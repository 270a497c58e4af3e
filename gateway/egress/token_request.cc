#include "gateway/egress/token_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "gateway/config/secret.h"
#include "gateway/egress/event_loop.h"
#include "gateway/egress/routes.h"
#include "gateway/egress/start_thread.h"
#include "gateway/egress/upstream.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/signal_mask.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kWordBytes = 64;

// application/x-www-form-urlencoded, everything but letters, digits and "-._~" escaped.
std::string Escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(3 * text.size());
  for (char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string BodyFor(const TokenEndpoint& endpoint, std::string_view refresh_token) {
  if (endpoint.takes_json) {
    JsonText json;
    json.Open('{').Key("client_id").String(endpoint.client_id);
    json.Key("grant_type").String("refresh_token");
    json.Key("refresh_token").String(refresh_token).Close('}');
    return json.text();
  }
  std::string token = Escaped(refresh_token);
  std::string body = Text("grant_type=refresh_token&refresh_token=", token,
                          "&client_id=", Escaped(endpoint.client_id));
  Wipe(token);
  return body;
}

// The one-word reason of an error answer: "error" as in RFC 6749 section 5.2, or the code of an
// object there.
std::string ReasonIn(const std::string& body) {
  const auto answer = nlohmann::json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("error")) return "";
  const auto& error = answer["error"];
  std::string word;
  if (error.is_string()) word = error.get<std::string>();
  if (error.is_object() && error.contains("code") && error["code"].is_string())
    word = error["code"].get<std::string>();
  const bool is_word = std::all_of(word.begin(), word.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return is_word && word.size() <= kWordBytes ? word : "";
}

Error Unavailable(std::string why) {
  return Error(Kind::kSystem, std::move(why)).Coded("provider_unavailable");
}

// Takes the answer and ends the loop with it.
class TokenSink : public UpstreamSink {
 public:
  explicit TokenSink(EventLoop* loop) : loop_(loop) {}
  ~TokenSink() override { Wipe(body_); }
  TokenSink(const TokenSink&) = delete;
  TokenSink& operator=(const TokenSink&) = delete;

  Intake OnAnswer(const UpstreamAnswer& answer) override {
    status_ = answer.status;
    return Intake::kTaken;
  }
  Intake OnBytes(std::string_view bytes) override {
    is_too_long_ = is_too_long_ || body_.size() + bytes.size() > kTokenAnswerBytes;
    if (is_too_long_) return Intake::kAbort;
    body_.append(bytes);
    return Intake::kTaken;
  }
  void OnEnd(const UpstreamEnd& end) override {
    is_ended_ = true;
    failure_ = end.message;
    loop_->Stop();
  }

  bool is_ended() const { return is_ended_; }
  Result<SecretText> TakeAnswer() {
    if (is_too_long_)
      return Unavailable(Text("it answered with more than ", kTokenAnswerBytes, " bytes"));
    if (!failure_.empty()) return Unavailable(failure_);
    if (status_ == 200) return SecretText::Take(std::move(body_));
    if (status_ != 400 && status_ != 401 && status_ != 403)
      return Unavailable(Text("it answered ", status_));
    std::string reason = ReasonIn(body_);
    return Error(Kind::kDenied, Text("it says that the login is over (", status_,
                                     reason.empty() ? "" : " ", reason, ")"))
        .Coded("auth_failed");
  }

 private:
  EventLoop* loop_;
  int status_ = 0;
  bool is_ended_ = false;
  bool is_too_long_ = false;
  std::string body_;
  std::string failure_;
};

std::string_view KindOf(const TokenEndpoint& endpoint) {
  return endpoint.takes_json ? "application/json" : "application/x-www-form-urlencoded";
}

Result<SecretText> Ask(const TokenEndpoint& endpoint, std::string_view refresh_token,
                       const Uplink& uplink, const std::function<bool()>& is_cancelled,
                       std::chrono::milliseconds wait) {
  Upstream upstream = TRY(ParseUpstream(endpoint.url).With("token_endpoint"));
  std::unique_ptr<EventLoop> loop = TRY(EventLoop::Make());
  std::unique_ptr<UpstreamClient> client = TRY(UpstreamClient::Make(loop.get()));
  TokenSink sink(loop.get());
  UpstreamRequest request;
  request.url = upstream.Url();
  request.headers = {{"accept", "application/json"},
                     {"content-type", std::string(KindOf(endpoint))}};
  request.body = BodyFor(endpoint, refresh_token);
  request.body_is_secret = true;
  request.loopback = upstream.loopback;
  request.uplink = uplink;
  std::unique_ptr<UpstreamTransfer> transfer = TRY(client->Start(std::move(request), &sink));
  const EventLoop::Clock::time_point until = EventLoop::Clock::now() + wait;
  bool was_cancelled = false;
  loop->SetTick([&] {
    was_cancelled = is_cancelled();
    if (was_cancelled || EventLoop::Clock::now() >= until) loop->Stop();
  });
  TRY(loop->Run());
  transfer.reset();
  if (sink.is_ended()) return sink.TakeAnswer();
  if (was_cancelled) return Error(Kind::kSystem, "stopped").Coded("stopped");
  return Unavailable(Text("it did not answer within ",
                          std::chrono::duration_cast<std::chrono::seconds>(wait).count(), " s"));
}

}  // namespace

Result<SecretText> AskForTokens(const TokenEndpoint& endpoint, std::string_view refresh_token,
                                const Uplink& uplink, const std::function<bool()>& is_cancelled,
                                std::chrono::milliseconds wait) {
  // In a thread of its own, with whose end a SIGPIPE of the TLS connection goes, too.
  sys::SignalsBlocked blocked = TRY(sys::BlockAllSignals());
  Result<SecretText> answer = Error(Kind::kInternal, "the token endpoint was not asked");
  std::thread asks =
      TRY(StartThread([&] { answer = Ask(endpoint, refresh_token, uplink, is_cancelled, wait); }));
  asks.join();
  return answer;
}

}  // namespace taskcell::gateway
