#include "gateway/egress/client_connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "gateway/egress/answer_head.h"
#include "gateway/egress/connect_request.h"
#include "launcher/base/text.h"
#include "launcher/sys/stream.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kReadBytes = 64U << 10;
// Bytes already sent that are worth removing from the front of the buffer.
constexpr std::size_t kCompactBytes = 256U << 10;
constexpr std::size_t kLowWater = 64U << 10;
constexpr int kDrainSeconds = 2;
constexpr std::size_t kPathBytes = 256;

}  // namespace

ClientConnection::ClientConnection(CellSession* session, UniqueFd fd)
    : session_(session), fd_(std::move(fd)) {}

ClientConnection::~ClientConnection() {
  transfer_.reset();
  if (!is_recorded_ && record_.code.empty()) record_.code = "egress_detached";
  FinishRequest();
  if (fd_.valid()) session_->loop()->Forget(fd_.get());
}

Status ClientConnection::Begin() {
  TRY(sys::SendAtOnce(fd_.get()));
  Enter(State::kIdle, session_->route().limits.keep_alive_seconds);
  return session_->loop()->Watch(fd_.get(), EPOLLIN | EPOLLRDHUP,
                                 [this](uint32_t events) { OnEvents(events); });
}

void ClientConnection::Enter(State state, int seconds) {
  state_ = state;
  deadline_ = EventLoop::Clock::now() + std::chrono::seconds(seconds);
}

void ClientConnection::Tick(EventLoop::Clock::time_point now) {
  if (state_ == State::kClosed || now < deadline_) return;
  // While the provider works its own idle time counts; the peer's only once it does not read.
  if (state_ == State::kRelaying && !waits_) return;
  if (state_ == State::kHead || state_ == State::kBody) {
    Refuse({408, "egress_timeout", "the request was not finished in time"}, true);
    return;
  }
  Close();
}

void ClientConnection::OnEvents(uint32_t events) {
  bool reads = state_ == State::kIdle || state_ == State::kHead || state_ == State::kBody ||
               state_ == State::kDraining;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return Close();
  if (reads && (events & (EPOLLIN | EPOLLRDHUP)) != 0) return ReadSome();
  // Whoever has ended its side does not wait for an answer.
  if ((events & EPOLLRDHUP) != 0) return Close();
  if ((events & EPOLLOUT) != 0) {
    if (!Flush()) return Close();
    AfterFlush();
  }
}

void ClientConnection::ReadSome() {
  char buffer[kReadBytes];
  Result<std::optional<std::size_t>> got = sys::ReceiveNow(fd_.get(), buffer);
  if (!got.ok()) return Close();
  if (!got->has_value()) return;
  std::size_t bytes = got->value();
  if (bytes == 0) return Close();
  bool is_within = session_->CountUp(bytes);
  if (state_ == State::kDraining) {
    if (!is_within) return Close();
    return Enter(State::kDraining, kDrainSeconds);  // it is still sending
  }
  in_.append(buffer, bytes);
  if (state_ == State::kIdle) BeginRequest();
  record_.bytes_up += bytes;
  if (!is_within)
    return Refuse(Exhausted("egress_bytes", "the task has sent all the bytes it may"), true);
  Advance();
}

void ClientConnection::BeginRequest() {
  Enter(State::kHead, session_->route().limits.request_seconds);
  head_ = RequestHead();
  record_ = EgressRequest();
  record_.started_ms = session_->NowMs();
  record_.host = session_->route().upstream.host;
  place_.reset();
  is_recorded_ = false;
  is_refused_ = false;
  is_failed_ = false;
}

void ClientConnection::Advance() {
  if (state_ == State::kHead) TakeHead();
  if (state_ == State::kBody) TakeBody();
}

void ClientConnection::TakeHead() {
  std::size_t from = scanned_ > 3 ? scanned_ - 3 : 0;
  std::size_t length = HeadLength(std::string_view(in_).substr(from));
  if (length > 0) length += from;
  scanned_ = in_.size();
  if (length > kEgressHeadBytes || (length == 0 && in_.size() >= kEgressHeadBytes)) {
    return Refuse({431, "egress_head_size",
                   Text("the request's head is larger than ", kEgressHeadBytes, " bytes")},
                  true);
  }
  if (length == 0) return;
  auto parsed = ParseRequestHead(std::string_view(in_).substr(0, length));
  // Absolute form and the like name another place than a path of the provider's.
  std::string target = ShownTarget(in_);
  record_.host = target.starts_with('/') ? session_->route().upstream.host : std::move(target);
  in_.erase(0, length);
  scanned_ = 0;
  bool is_within = session_->CountRequest();
  if (auto* refusal = std::get_if<Refusal>(&parsed)) return Refuse(*refusal, true);
  head_ = std::get<RequestHead>(std::move(parsed));
  record_.method = head_.method;
  record_.path = Printable(head_.path).substr(0, kPathBytes);
  if (!is_within)
    return Refuse(Exhausted("egress_requests", "the task has made all the requests it may"), true);
  UseHead();
}

void ClientConnection::UseHead() {
  auto found = FindEndpoint(session_->route(), session_->port(), head_);
  if (auto* refusal = std::get_if<Refusal>(&found)) {
    const std::string* host = head_.Find("host");
    if (refusal->code == "egress_host" && host != nullptr)
      record_.host = Printable(*host).substr(0, kPathBytes);
    bool has_body = head_.is_chunked || head_.content_length > 0;
    return Refuse(*refusal, has_body || !head_.keeps_alive);
  }
  endpoint_ = std::get<Endpoint>(std::move(found));
  if (endpoint_.is_local) return Answer(200, "", "", !head_.keeps_alive);
  // Nothing is asked, and paid for, that could not be answered.
  if (session_->IsDownSpent())
    return Refuse(Exhausted("egress_bytes", "the task has received all the bytes it may"), true);
  bool is_too_large = head_.content_length > session_->route().limits.body_bytes;
  if (!is_too_large && !Hold(head_.content_length)) return;
  body_.emplace(head_, session_->route().limits.body_bytes);
  state_ = State::kBody;
  if (!head_.expects_continue || !in_.empty() || is_too_large) return;
  out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  if (!Flush()) return Close();
  UpdateEvents();
}

// A body that says how large it is is counted as a whole, since it gets room for that.
bool ClientConnection::Hold(std::size_t bytes) {
  if (session_->Hold(bytes)) {
    held_bytes_ += bytes;
    return true;
  }
  Refuse({503, "egress_memory",
          "the task's requests hold too much memory at one time; try again later"},
         true);
  return false;
}

void ClientConnection::TakeBody() {
  std::string_view bytes = in_;
  std::size_t before = body_->body().size();
  std::optional<Refusal> refusal = body_->Take(&bytes);
  in_.erase(0, in_.size() - bytes.size());
  if (refusal) return Refuse(*refusal, true);
  if (head_.is_chunked && !Hold(body_->body().size() - before)) return;
  if (body_->done()) Judge();
}

void ClientConnection::Judge() {
  Judgement judgement = JudgeBody(session_->route().api, body_->body(), session_->route().models);
  record_.model = judgement.model;
  record_.tools_offered = judgement.tools.size();
  if (judgement.refusal) return Refuse(*judgement.refusal, !head_.keeps_alive);
  const std::optional<uint64_t> held = session_->HoldCost(record_, body_->body().size());
  if (!held.has_value()) {
    return Refuse(
        {403, "egress_budget",
         "the account that pays has spent its monthly_budget_cents, or needs what is left "
         "for requests that are under way: raise it in config.toml, add another account, "
         "or wait for the next month"},
        !head_.keeps_alive);
  }
  held_cost_ = *held;
  session_->AddOffered(judgement.tools);
  Relay();
}

void ClientConnection::Relay() {
  const Route& route = session_->route();
  UpstreamRequest request;
  request.url = endpoint_.url;
  request.headers = UpstreamHeaders(route, head_);
  request.credential = &route.credential;
  request.body = body_->TakeBody();
  request.loopback = route.upstream.loopback;
  request.uplink = route.uplink;
  request.connect_seconds = route.limits.connect_seconds;
  request.idle_seconds = route.limits.upstream_idle_seconds;
  closes_ = !head_.keeps_alive;
  scanner_ = std::make_unique<EchoScanner>(route.credential.secret);
  failure_.reset();
  is_streaming_ = false;
  waits_ = false;
  Enter(State::kRelaying, route.limits.client_stall_seconds);
  UpdateEvents();
  // Before anything leaves: what becomes of it is told later.
  place_ = session_->NoteRequest(record_);
  Result<std::unique_ptr<UpstreamTransfer>> transfer =
      session_->upstream()->Start(std::move(request), this);
  if (!transfer.ok()) {
    return Refuse({500, "egress_internal", std::move(transfer).error().text}, true);
  }
  transfer_ = std::move(transfer).value();
}

// ---- sending and ending ---------------------------------------------------------------------

bool ClientConnection::Flush() {
  while (sent_ < out_.size()) {
    Result<std::optional<std::size_t>> sent =
        sys::SendNow(fd_.get(), std::string_view(out_).substr(sent_));
    if (!sent.ok()) return false;
    if (!sent->has_value()) break;
    sent_ += sent->value();
    deadline_ = EventLoop::Clock::now() +
                std::chrono::seconds(session_->route().limits.client_stall_seconds);
  }
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  } else if (sent_ > kCompactBytes) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return true;
}

void ClientConnection::AfterFlush() {
  if (waits_ && out_.size() - sent_ <= kLowWater && transfer_) {
    waits_ = false;
    transfer_->Resume();  // may end the transfer, and with it this request
    if (state_ != State::kClosed) UpdateEvents();
    return;
  }
  if (state_ != State::kFlushing || !out_.empty()) return UpdateEvents();
  FinishRequest();
  if (closes_) return BeginDraining();
  Enter(State::kIdle, session_->route().limits.keep_alive_seconds);
  if (!in_.empty()) {
    // The next request came along with this one. It is begun from the loop, so that a thousand of
    // them are not a thousand calls deep.
    BeginRequest();
    record_.bytes_up = in_.size();
    session_->AdvanceLater(this);
  }
  UpdateEvents();
}

void ClientConnection::FinishRequest() {
  session_->Release(held_bytes_);
  held_bytes_ = 0;
  body_.reset();
  scanner_.reset();
  Record();
}

// Before the last byte goes to the cell: whoever sees an answer's end finds it counted.
void ClientConnection::Record() {
  if (is_recorded_) return;
  is_recorded_ = true;
  if (reader_) {
    reader_->Finish();
    const AnswerFacts& facts = reader_->facts();
    record_.input_tokens = facts.input_tokens;
    record_.cached_tokens = facts.cached_tokens;
    record_.cache_write_tokens = facts.cache_write_tokens;
    record_.output_tokens = facts.output_tokens;
    record_.finish = facts.finish;
    record_.error_type = facts.error_type;
    record_.tools_called = facts.tools_called;
    reader_.reset();
  }
  record_.duration_ms = session_->NowMs() - record_.started_ms;
  session_->AddRequest(std::move(record_), is_refused_, is_failed_, place_,
                       std::exchange(held_cost_, 0));
  record_ = EgressRequest();
}

void ClientConnection::BeginDraining() {
  FinishRequest();
  (void)sys::EndSending(fd_.get());  // ignoring: then the peer is gone and reading says so
  Enter(State::kDraining, kDrainSeconds);
  out_.clear();
  sent_ = 0;
  in_.clear();
  UpdateEvents();
}

// Programs hang up at the event that ends an answer, though the provider's stream has not ended.
bool ClientConnection::HasWholeAnswer() const {
  return reader_.has_value() && reader_->facts().IsEnded() && out_.empty();
}

void ClientConnection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (!is_recorded_ && record_.code.empty() && !HasWholeAnswer())
    record_.code = "egress_client_gone";
  transfer_.reset();
  FinishRequest();
  session_->loop()->Forget(fd_.get());
  fd_.Reset();
  session_->Drop(this);
}

void ClientConnection::UpdateEvents() {
  if (state_ == State::kClosed) return;
  bool reads = state_ == State::kIdle || state_ == State::kHead || state_ == State::kBody ||
               state_ == State::kDraining;
  uint32_t events = EPOLLRDHUP;
  if (reads) events |= EPOLLIN;
  if (sent_ < out_.size()) events |= EPOLLOUT;
  session_->loop()->Change(fd_.get(), events);
}

}  // namespace taskcell::gateway
