#include "gateway/egress/cell_session.h"

#include <sys/epoll.h>

#include <algorithm>

#include "gateway/egress/client_connection.h"
#include "gateway/egress/refusal.h"
#include "gateway/egress/tunnel_connection.h"
#include "launcher/base/text.h"
#include "launcher/sys/stream.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kNamesKept = 256;
constexpr int kAcceptedAtOnce = 16;

void AddDistinct(const std::vector<std::string>& names, std::vector<std::string>* all) {
  for (const std::string& name : names) {
    if (all->size() == kNamesKept) return;
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
  if (connections_.size() >= limits().connections) return SayFull(std::move(fd));
  std::unique_ptr<CellConnection> connection;
  if (is_for_tunnels) {
    connection = std::make_unique<TunnelConnection>(this, std::move(fd));
  } else {
    connection = std::make_unique<ClientConnection>(this, std::move(fd));
  }
  if (connection->Begin().ok()) connections_.push_back(std::move(connection));
}

void CellSession::SayFull(UniqueFd fd) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++record_.totals.connections_refused;
  }
  Refusal refusal{503, "egress_connections",
                  Text("the task has ", limits().connections, " connections open already")};
  std::string body = RefusalBody(ways_.route.api, refusal);
  // ignoring: whoever opens so many connections may miss the reason
  (void)sys::SendNow(fd.get(),
                     Text("HTTP/1.1 503 Service Unavailable\r\nx-taskcell-egress: ", refusal.code,
                          "\r\ncontent-type: application/json\r\n", "content-length: ", body.size(),
                          "\r\nconnection: close\r\n\r\n", body));
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
  if (record_.totals.bytes_down + bytes > limits().bytes_down) return false;
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

void CellSession::AddRequest(EgressRequest request, bool is_refused, bool is_failed) {
  std::lock_guard<std::mutex> lock(mutex_);
  EgressTotals& totals = record_.totals;
  if (is_refused) ++totals.refused;
  if (is_failed) ++totals.upstream_failures;
  AddAnswer(request, &totals);
  AddDistinct(request.tools_called, &record_.tools_called);
  // Past the bound only the sums go on.
  if (record_.requests.size() < kEgressRequests) record_.requests.push_back(std::move(request));
}

std::size_t CellSession::AddTunnel(EgressTunnel tunnel) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++record_.totals.tunnels;
  if (!tunnel.code.empty()) ++record_.totals.tunnels_refused;
  std::size_t place = record_.tunnels.size();
  // Past the bound only the sums go on.
  if (place < kEgressTunnels) record_.tunnels.push_back(std::move(tunnel));
  return place;
}

void CellSession::UpdateTunnel(std::size_t place, EgressTunnel tunnel) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (tunnel.code == "egress_address") ++record_.totals.tunnels_refused;
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
