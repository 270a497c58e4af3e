#include "gateway/egress/tunnel_connection.h"

#include <sys/epoll.h>

#include <utility>

#include "gateway/egress/client_hello.h"
#include "gateway/egress/connect_request.h"
#include "gateway/egress/http_request.h"
#include "launcher/base/text.h"
#include "launcher/sys/stream.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kReadBytes = 64U << 10;
constexpr int kMovedAtOnce = 16;  // buffers of one way before others have their turn
constexpr int kDrainSeconds = 2;
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";
// A record of TLS 1.2 with the fatal alert access_denied (RFC 8446 section 6): TLS clients name it
// in what they report.
constexpr std::string_view kAccessDenied("\x15\x03\x03\x00\x02\x02\x31", 7);

// Watches `fd` for `events`, or not at all: a peer that hangs up would be told again and again.
void Want(EventLoop* loop, int fd, uint32_t events, bool* is_watched,
          const EventLoop::Handler& handler) {
  if (events == 0) {
    if (*is_watched) loop->Forget(fd);
    *is_watched = false;
  } else if (*is_watched) {
    loop->Change(fd, events);
  } else {
    *is_watched = loop->Watch(fd, events, handler).ok();  // else it ends by its idle time
  }
}

}  // namespace

TunnelConnection::TunnelConnection(CellSession* session, UniqueFd fd)
    : session_(session), client_(std::move(fd)), started_ms_(session->NowMs()) {}

TunnelConnection::~TunnelConnection() { Close("egress_detached"); }

Status TunnelConnection::Begin() {
  TRY(sys::SendAtOnce(client_.get()));
  Enter(State::kHead, session_->limits().request_seconds);
  TRY(session_->loop()->Watch(client_.get(), EPOLLIN | EPOLLRDHUP,
                              [this](uint32_t events) { OnClient(events); }));
  is_client_watched_ = true;
  return Ok();
}

void TunnelConnection::Enter(State state, int seconds) {
  state_ = state;
  deadline_ = EventLoop::Clock::now() + std::chrono::seconds(seconds);
}

void TunnelConnection::Tick(EventLoop::Clock::time_point now) {
  if (state_ == State::kClosed || now < deadline_) return;
  if (state_ == State::kHead)
    return Refuse({408, "egress_timeout", "the request was not finished in time"});
  if (state_ == State::kHello) return Cut("egress_timeout");
  if (state_ == State::kDialing) return;  // its own time counts
  session_->Drop(this);
  Close("egress_idle");
}

void TunnelConnection::OnClient(uint32_t events) {
  if (state_ == State::kRelaying) return Relay();
  bool is_gone = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (!is_gone && state_ != State::kDialing) return ReadClient();
  session_->Drop(this);
  Close("egress_client_gone");
}

void TunnelConnection::OnUpstream(uint32_t /*events*/) { Relay(); }

void TunnelConnection::ReadClient() {
  char buffer[kReadBytes];
  Result<std::optional<std::size_t>> got = sys::ReceiveNow(client_.get(), buffer);
  if (got.ok() && !got->has_value()) return;
  if (!got.ok() || got->value() == 0) {
    session_->Drop(this);
    return Close("egress_client_gone");
  }
  bool is_within = session_->CountUp(got->value());
  if (state_ == State::kDraining) return;
  in_.append(buffer, got->value());
  if (!is_within) {
    return state_ == State::kHead
               ? Refuse(Exhausted("egress_bytes", "the task has sent all the bytes it may"))
               : Cut("egress_bytes");
  }
  if (state_ == State::kHead) TakeHead();
  if (state_ == State::kHello) TakeHello();
}

void TunnelConnection::TakeHead() {
  std::size_t length = HeadLength(in_);
  if (length > kConnectHeadBytes || (length == 0 && in_.size() >= kConnectHeadBytes)) {
    return Refuse({431, "egress_head_size",
                   Text("the request's head is larger than ", kConnectHeadBytes, " bytes")});
  }
  if (length == 0) return;
  std::string head = in_.substr(0, length);
  in_.erase(0, length);
  bool is_within = session_->CountRequest();
  auto parsed = ParseConnect(head);
  if (auto* refusal = std::get_if<Refusal>(&parsed)) {
    target_.host = ShownTarget(head);
    return Refuse(*refusal);
  }
  target_ = std::get<AllowedHost>(std::move(parsed));
  if (!is_within)
    return Refuse(Exhausted("egress_requests", "the task has made all the requests it may"));
  if (std::optional<Refusal> refusal = CheckAllowed(session_->allowed(), target_))
    return Refuse(*refusal);
  Enter(State::kHello, session_->limits().hello_seconds);
  // So few bytes of a new connection always fit.
  if (!sys::SendNow(client_.get(), kEstablished).ok()) {
    session_->Drop(this);
    return Close("egress_client_gone");
  }
}

void TunnelConnection::TakeHello() {
  auto read = ReadClientHello(in_);
  if (std::holds_alternative<HelloIncomplete>(read)) return;
  if (auto* refusal = std::get_if<Refusal>(&read)) return Cut(refusal->code);
  std::optional<Refusal> refusal =
      CheckServerName(target_, std::get<ClientHello>(read).server_name);
  if (refusal) return Cut(refusal->code);
  Note("");
  up_.bytes = std::exchange(in_, "");
  Enter(State::kDialing, 0);
  UpdateEvents();
  Result<std::unique_ptr<Dial>> dial = StartDial(
      session_->curl(), target_, session_->route().uplink, session_->limits().connect_seconds,
      [this](DialEnd end) { OnDialed(std::move(end)); });
  if (!dial.ok()) return Cut("egress_internal");
  dial_ = std::move(dial).value();
}

void TunnelConnection::OnDialed(DialEnd end) {
  if (!end.fd.valid()) return Cut(end.code);
  dial_.reset();
  upstream_ = std::move(end.fd);
  (void)sys::SendAtOnce(upstream_.get());  // ignoring: then small records wait for each other
  Enter(State::kRelaying, session_->limits().tunnel_idle_seconds);
  Relay();
}

void TunnelConnection::SeeServer() {
  if (retry_ != Retry::kOpen) return;
  answer_ += down_.bytes;
  const ServerHello said = ReadServerHello(answer_);
  if (said == ServerHello::kIncomplete) return;
  retry_ = said == ServerHello::kRetry ? Retry::kAsked : Retry::kDecided;
  answer_.clear();
}

bool TunnelConnection::TakeSecondHello() {
  auto read = ReadSecondClientHello(in_);
  std::optional<Refusal> refusal;
  if (auto* wrong = std::get_if<Refusal>(&read)) refusal = std::move(*wrong);
  if (auto* hello = std::get_if<ClientHello>(&read))
    refusal = CheckServerName(target_, hello->server_name);
  if (refusal) {
    Cut(refusal->code);
    return false;
  }
  if (std::holds_alternative<HelloIncomplete>(read)) return true;
  retry_ = Retry::kDecided;
  up_.bytes = std::exchange(in_, "");
  return true;
}

void TunnelConnection::Relay() {
  bool goes_on = Move(client_.get(), upstream_.get(), &up_, true) &&
                 Move(upstream_.get(), client_.get(), &down_, false);
  if (goes_on && !(up_.is_closed && down_.is_closed)) return UpdateEvents();
  if (state_ == State::kDraining) return;  // cut: the client is still to hear so
  session_->Drop(this);
  Close("");
}

bool TunnelConnection::Move(int from, int to, Way* way, bool is_up) {
  for (int count = 0; count < kMovedAtOnce; ++count) {
    while (way->sent < way->bytes.size()) {
      auto sent = sys::SendNow(to, std::string_view(way->bytes).substr(way->sent));
      if (!sent.ok()) return false;
      if (!sent->has_value()) return true;
      way->sent += sent->value();
      way->total += sent->value();
      deadline_ =
          EventLoop::Clock::now() + std::chrono::seconds(session_->limits().tunnel_idle_seconds);
    }
    way->bytes.clear();
    way->sent = 0;
    if (way->is_ended) {
      if (!way->is_closed && !sys::EndSending(to).ok()) return false;
      way->is_closed = true;
      return true;
    }
    if (is_up && retry_ == Retry::kOpen) return true;
    if (!Fill(from, way, is_up)) return false;
    if (way->bytes.empty() && !way->is_ended) return true;
  }
  return true;
}

// Reads one buffer of `from`; nothing where nothing is there.
bool TunnelConnection::Fill(int from, Way* way, bool is_up) {
  char buffer[kReadBytes];
  Result<std::optional<std::size_t>> got = sys::ReceiveNow(from, buffer);
  if (!got.ok()) return false;
  if (!got->has_value()) return true;
  way->is_ended = got->value() == 0;
  way->bytes.assign(buffer, got->value());
  bool is_within = is_up ? session_->CountUp(got->value()) : session_->CountDown(got->value());
  if (!is_within) Cut("egress_bytes");
  if (!is_within) return false;
  if (!is_up) SeeServer();
  if (!is_up || retry_ != Retry::kAsked) return true;
  in_ += std::exchange(way->bytes, "");
  return TakeSecondHello();
}

// ---- ending ---------------------------------------------------------------------------------

void TunnelConnection::Refuse(const Refusal& refusal) {
  Note(refusal.code);
  const std::string body = RefusalBody(WireApi::kOpenAiChat, refusal);
  // ignoring: a peer that takes not even this much may miss the reason
  (void)sys::SendNow(client_.get(),
                     Text("HTTP/1.1 ", refusal.status, " ", StatusPhrase(refusal.status), "\r\n",
                          RefusalHeaders(refusal),
                          "content-type: application/json\r\ncontent-length: ", body.size(),
                          "\r\nconnection: close\r\n\r\n", body));
  BeginDraining();
}

void TunnelConnection::Cut(std::string_view code) {
  Note(code);
  dial_.reset();
  if (is_upstream_watched_) session_->loop()->Forget(upstream_.get());
  is_upstream_watched_ = false;
  upstream_.Reset();
  (void)sys::SendNow(client_.get(), kAccessDenied);  // ignoring: as above
  BeginDraining();
}

void TunnelConnection::BeginDraining() {
  (void)sys::EndSending(client_.get());  // ignoring: then the peer is gone and reading says so
  Enter(State::kDraining, kDrainSeconds);
  in_.clear();
  UpdateEvents();
}

// What was decided stands in the record before it is done; what comes of it is added.
void TunnelConnection::Note(std::string_view code) {
  EgressTunnel tunnel;
  tunnel.host = target_.host;
  tunnel.port = target_.port;
  tunnel.code = code;
  tunnel.bytes_up = up_.total;
  tunnel.bytes_down = down_.total;
  tunnel.started_ms = started_ms_;
  tunnel.duration_ms = session_->NowMs() - started_ms_;
  if (noted_ == kNotNoted) {
    noted_ = session_->AddTunnel(std::move(tunnel));
  } else {
    session_->UpdateTunnel(noted_, std::move(tunnel));
  }
}

void TunnelConnection::Close(std::string_view code) {
  if (state_ == State::kClosed) return;
  // A refusal has been noted with its reason; a client that sent no ClientHello wanted nothing.
  if (state_ == State::kDialing || state_ == State::kRelaying) Note(code);
  state_ = State::kClosed;
  dial_.reset();
  if (is_client_watched_) session_->loop()->Forget(client_.get());
  if (is_upstream_watched_) session_->loop()->Forget(upstream_.get());
  client_.Reset();
  upstream_.Reset();
}

void TunnelConnection::UpdateEvents() {
  if (state_ == State::kClosed) return;
  bool is_relaying = state_ == State::kRelaying;
  uint32_t client = 0;
  if (is_relaying) {
    if (up_.bytes.empty() && !up_.is_ended && retry_ != Retry::kOpen) client |= EPOLLIN;
    if (down_.is_due()) client |= EPOLLOUT;
  } else {
    client = state_ == State::kDialing ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
  }
  Want(session_->loop(), client_.get(), client, &is_client_watched_,
       [this](uint32_t events) { OnClient(events); });
  if (!is_relaying) return;
  uint32_t upstream = 0;
  if (down_.bytes.empty() && !down_.is_ended) upstream |= EPOLLIN;
  if (up_.is_due()) upstream |= EPOLLOUT;
  Want(session_->loop(), upstream_.get(), upstream, &is_upstream_watched_,
       [this](uint32_t events) { OnUpstream(events); });
}

}  // namespace taskcell::gateway
