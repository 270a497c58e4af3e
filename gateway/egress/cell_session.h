#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gateway/egress/cell_connection.h"
#include "gateway/egress/cell_ways.h"
#include "gateway/egress/event_loop.h"
#include "gateway/egress/record.h"
#include "gateway/egress/route.h"
#include "gateway/egress/upstream.h"

namespace taskcell::gateway {

// One attached cell: its listeners, route, connections, and what it has used and done. Everything
// but Totals and Record belongs to the loop's thread.
class CellSession : public std::enable_shared_from_this<CellSession> {
 public:
  // `port` is the one of the route's listener.
  CellSession(EventLoop* loop, UpstreamClient* upstream, uint16_t port, CellWays ways);
  ~CellSession();

  Status Begin();
  // Drops every connection and transfer, closes the listeners, wipes the credential.
  void End();
  // Closes connections whose time is over.
  void Tick();

  EgressTotals Totals() const;
  EgressRecord Record() const;

  // For its connections.
  EventLoop* loop() { return loop_; }
  UpstreamClient* upstream() { return upstream_; }
  CurlMulti* curl() { return upstream_->multi(); }
  const Route& route() const { return ways_.route; }
  const EgressLimits& limits() const { return ways_.route.limits; }
  const std::vector<AllowedHost>& allowed() const { return ways_.allowed; }
  uint16_t port() const { return port_; }
  int64_t NowMs() const;

  // Holds back of whoever pays what a request with a body of so many bytes may cost, until
  // AddRequest; the amount. nullopt: nothing is left, and the record notes that it was asked for.
  std::optional<uint64_t> HoldCost(const EgressRequest& request, std::size_t body_bytes);
  // Counts one request; false when it is one too many.
  bool CountRequest();
  // Count bytes; false when the cell has used up what it may.
  bool CountUp(std::size_t bytes);
  bool CountDown(std::size_t bytes);
  // Whether CountDown said no before: no answer fits any more.
  bool IsDownSpent() const { return is_down_spent_; }
  // Counts body bytes held in memory; false, and nothing counted, over the limit.
  bool Hold(std::size_t bytes);
  void Release(std::size_t bytes) { held_bytes_ -= bytes; }

  void AddOffered(const std::vector<std::string>& tools);
  // Adds a request that is about to be relayed to the record and returns its place there.
  std::size_t NoteRequest(EgressRequest request);
  // A request has ended: counts it, at `place` if it was noted before, and pays it of what was
  // held back for it.
  void AddRequest(EgressRequest request, bool is_refused, bool is_failed,
                  std::optional<std::size_t> place, uint64_t held_cost);
  // Adds a tunnel to the record and returns its place there; what becomes of it is told later.
  std::size_t AddTunnel(EgressTunnel tunnel);
  void UpdateTunnel(std::size_t place, EgressTunnel tunnel);
  void NoteEcho();
  void NoteRetryAfter(int64_t seconds);
  // Calls its Advance from the loop, if it still exists then.
  void AdvanceLater(CellConnection* connection);
  // The connection is of no more use; it is destroyed after the current event.
  void Drop(CellConnection* connection);

 private:
  Status WatchListener(int listener, bool is_for_tunnels);
  void OnListener(int listener, bool is_for_tunnels);
  void Open(UniqueFd fd, bool is_for_tunnels);
  void SayFull(UniqueFd fd, bool is_for_tunnels);
  void Pay(const EgressRequest& request, uint64_t held_cost);

  EventLoop* loop_;
  UpstreamClient* upstream_;
  uint16_t port_;
  CellWays ways_;
  bool is_ended_ = false;
  EventLoop::Clock::time_point begun_;
  std::vector<std::unique_ptr<CellConnection>> connections_;
  std::vector<std::unique_ptr<CellConnection>> dropped_;
  std::size_t held_bytes_ = 0;
  bool is_down_spent_ = false;

  mutable std::mutex mutex_;  // guards record_
  EgressRecord record_;
};

}  // namespace taskcell::gateway
