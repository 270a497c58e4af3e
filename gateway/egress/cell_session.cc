#include "gateway/egress/cell_session.h"

#include <sys/epoll.h>

#include <algorithm>

#include "gateway/egress/client_connection.h"
#include "gateway/egress/refusal.h"
#include "gateway/egress/request_cost.h"
#include "gateway/egress/tunnel_connection.h"
#include "launcher/base/text.h"
#include "launcher/sys/stream.h"

namespace taskcell::gateway {
namespace {

constexpr int kAcceptedAtOnce = 16;

void AddDistinct(const std::vector<std::string>& names, std::vector<std::string>* all) {
  for (const std::string& name : names) {
    if (all->size() == kEgressNamesKept) return;
    if (std::find(all->begin(), all->end(), name) == all->end()) all->push_back(name);
  }
}

// Providers say in one of many words that the account can't pay.
bool IsBilling(const EgressRequest& request) {
  const std::string& type = request.error_type;
  return request.upstream_status == 402 || type == "billing_error" || type == "insufficient_quota";
}

bool IsModelMissing(const EgressRequest& request) {
  return request.upstream_status == 404 || request.error_type == "model_not_found";
}

void AddAnswer(const EgressRequest& request, EgressTotals* totals) {
  int status = request.upstream_status;
  if (status == 0) return;
  totals->last_upstream_status = status;
  if (status == 401 || status == 403) ++totals->auth_failures;
  if (status >= 500) ++totals->provider_errors;
  // It has a limit of its own, and shows neither that the model answers nor that it is missing.
  if (IsTokenCount(request)) return;
  if (IsBilling(request)) {
    ++totals->billing;
  } else if (status == 429) {
    ++totals->rate_limited;
  }
  if (IsModelMissing(request)) ++totals->model_not_found;
  if (status != 200) return;
  ++totals->model_calls;
  if (!request.tools_called.empty()) ++totals->steps;
  totals->tool_calls += request.tools_called.size();
  totals->input_tokens += request.input_tokens;
  totals->output_tokens += request.output_tokens;
}

void NoteRefused(const EgressTunnel& tunnel, EgressRecord* record) {
  ++record->totals.tunnels_refused;
  CountRefusal(tunnel.port == 0 ? tunnel.host : Text(tunnel.host, ':', tunnel.port), tunnel.code,
               *record);
}

}  // namespace

CellSession::CellSession(EventLoop* loop, UpstreamClient* upstream, uint16_t port, CellWays ways)
    : loop_(loop),
      upstream_(upstream),
      port_(port),
      ways_(std::move(ways)),
      begun_(EventLoop::Clock::now()) {}

CellSession::~CellSession() = default;

Status CellSession::Begin() {
  TRY(WatchListener(ways_.listener.get(), false));
  return WatchListener(ways_.tunnel_listener.get(), true);
}

Status CellSession::WatchListener(int listener, bool is_for_tunnels) {
  if (listener < 0) return Ok();
  return loop_->Watch(listener, EPOLLIN, [this, listener, is_for_tunnels](uint32_t) {
    OnListener(listener, is_for_tunnels);
  });
}

void CellSession::End() {
  if (is_ended_) return;
  is_ended_ = true;
  for (UniqueFd* listener : {&ways_.listener, &ways_.tunnel_listener}) {
    if (listener->valid()) loop_->Forget(listener->get());
    listener->Reset();
  }
  connections_.clear();
  dropped_.clear();
  ways_.route.credential = Credential();
}

void CellSession::Tick() {
  loop_->Change(ways_.listener.get(), EPOLLIN);
  loop_->Change(ways_.tunnel_listener.get(), EPOLLIN);
  std::vector<CellConnection*> all;
  for (const auto& connection : connections_) all.push_back(connection.get());
  EventLoop::Clock::time_point now = EventLoop::Clock::now();
  for (CellConnection* connection : all) connection->Tick(now);  // one may be dropped, none freed
}

void CellSession::OnListener(int listener, bool is_for_tunnels) {
  for (int count = 0; count < kAcceptedAtOnce; ++count) {
    Result<std::optional<UniqueFd>> accepted = sys::AcceptNow(listener);
    // An error such as EMFILE passes by itself, but the listener stays ready: tried again at the
    // tick.
    if (!accepted.ok()) return loop_->Change(listener, 0);
    if (!accepted->has_value()) return;
    Open(std::move(accepted->value()), is_for_tunnels);
  }
}

void CellSession::Open(UniqueFd fd, bool is_for_tunnels) {
  if (connections_.size() >= limits().connections) return SayFull(std::move(fd), is_for_tunnels);
  std::unique_ptr<CellConnection> connection;
  if (is_for_tunnels) {
    connection = std::make_unique<TunnelConnection>(this, std::move(fd));
  } else {
    connection = std::make_unique<ClientConnection>(this, std::move(fd));
  }
  if (connection->Begin().ok()) connections_.push_back(std::move(connection));
}

void CellSession::SayFull(UniqueFd fd, bool is_for_tunnels) {
  constexpr int kForNow = 503;
  Refusal refusal{kForNow, "egress_connections",
                  Text("the task has ", limits().connections,
                       " connections open already, and more are not taken until one is closed")};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++record_.totals.connections_refused;
    CountRefusal(is_for_tunnels ? "" : ways_.route.upstream.host, refusal.code, record_);
  }
  const WireApi api = is_for_tunnels ? WireApi::kOpenAiChat : ways_.route.api;
  const int status = RefusalStatus(api, refusal);
  std::string body = RefusalBody(api, refusal);
  // ignoring: whoever opens so many connections may miss the reason
  (void)sys::SendNow(fd.get(),
                     Text("HTTP/1.1 ", status, " ", StatusPhrase(status), "\r\n",
                          RefusalHeaders(refusal), "content-type: application/json\r\n",
                          "content-length: ", body.size(), "\r\nconnection: close\r\n\r\n", body));
}

void CellSession::AdvanceLater(CellConnection* connection) {
  loop_->Post([self = shared_from_this(), connection] {
    for (const auto& each : self->connections_) {
      if (each.get() == connection) return connection->Advance();
    }
  });
}

void CellSession::Drop(CellConnection* connection) {
  auto found = std::find_if(connections_.begin(), connections_.end(),
                            [connection](const auto& each) { return each.get() == connection; });
  if (found == connections_.end()) return;
  dropped_.push_back(std::move(*found));
  connections_.erase(found);
  loop_->Post([self = shared_from_this()] { self->dropped_.clear(); });
}

int64_t CellSession::NowMs() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(EventLoop::Clock::now() - begun_)
      .count();
}

bool CellSession::CountRequest() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ++record_.totals.requests <= limits().requests;
}

bool CellSession::CountUp(std::size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  record_.totals.bytes_up += bytes;
  return record_.totals.bytes_up <= limits().bytes_up;
}

bool CellSession::CountDown(std::size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  is_down_spent_ = is_down_spent_ || record_.totals.bytes_down + bytes > limits().bytes_down;
  if (is_down_spent_) return false;
  record_.totals.bytes_down += bytes;
  return true;
}

bool CellSession::Hold(std::size_t bytes) {
  if (held_bytes_ + bytes > limits().held_body_bytes) return false;
  held_bytes_ += bytes;
  return true;
}

void CellSession::AddOffered(const std::vector<std::string>& tools) {
  std::lock_guard<std::mutex> lock(mutex_);
  AddDistinct(tools, &record_.tools_offered);
}

std::size_t CellSession::NoteRequest(EgressRequest request) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::size_t place = record_.requests.size();
  // Past the bound only the sums go on.
  if (place < kEgressRequests) record_.requests.push_back(std::move(request));
  return place;
}

void CellSession::AddRequest(EgressRequest request, bool is_refused, bool is_failed,
                             std::optional<std::size_t> place, uint64_t held_cost) {
  if (!place) place = NoteRequest(EgressRequest());
  Pay(request, held_cost);
  std::lock_guard<std::mutex> lock(mutex_);
  EgressTotals& totals = record_.totals;
  if (is_refused) {
    ++totals.refused;
    CountRefusal(request.host, request.code, record_);
  }
  if (is_failed) ++totals.upstream_failures;
  AddAnswer(request, &totals);
  AddDistinct(request.tools_called, &record_.tools_called);
  if (*place < record_.requests.size()) record_.requests[*place] = std::move(request);
}

// Calls whose model has no price cost nothing, and so do those that count tokens.
std::optional<uint64_t> CellSession::HoldCost(const EgressRequest& request,
                                              std::size_t body_bytes) {
  const Payment& payment = ways_.route.payment;
  if (payment.purse == nullptr) return 0;
  uint64_t at_least = 0;
  const std::optional<Price> price = payment.prices.Of(ways_.route.provider, request.model);
  if (price.has_value() && !IsTokenCount(request)) {
    TokenCount tokens;
    tokens.input = body_bytes / kRequestBytesPerToken;
    at_least = CostInMicrocents(*price, tokens);
  }
  const std::optional<uint64_t> held = payment.purse->Hold(at_least);
  if (held.has_value()) return held;
  std::lock_guard<std::mutex> lock(mutex_);
  record_.totals.budget_spent = true;
  return std::nullopt;
}

void CellSession::Pay(const EgressRequest& request, uint64_t held_cost) {
  const Payment& payment = ways_.route.payment;
  if (payment.purse == nullptr) return;
  const std::optional<RequestCost> cost = CostOf(request, payment.prices, ways_.route.provider);
  payment.purse->Pay(held_cost, cost.has_value() ? cost->microcents.value_or(0) : 0);
}

std::size_t CellSession::AddTunnel(EgressTunnel tunnel) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++record_.totals.tunnels;
  if (!tunnel.code.empty()) NoteRefused(tunnel, &record_);
  std::size_t place = record_.tunnels.size();
  // Past the bound only the sums go on.
  if (place < kEgressTunnels) record_.tunnels.push_back(std::move(tunnel));
  return place;
}

void CellSession::UpdateTunnel(std::size_t place, EgressTunnel tunnel) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::string_view refused : {"egress_address", "egress_bytes", "egress_sni", "egress_tls"})
    if (tunnel.code == refused) NoteRefused(tunnel, &record_);
  if (place < record_.tunnels.size()) record_.tunnels[place] = std::move(tunnel);
}

void CellSession::NoteEcho() {
  std::lock_guard<std::mutex> lock(mutex_);
  record_.totals.credential_echoed = true;
}

void CellSession::NoteRetryAfter(int64_t seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  record_.totals.retry_after_seconds = seconds;
}

EgressTotals CellSession::Totals() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return record_.totals;
}

EgressRecord CellSession::Record() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return record_;
}

}  // namespace taskcell::gateway
