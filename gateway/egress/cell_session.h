#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/egress/event_loop.h"
#include "gateway/egress/record.h"
#include "gateway/egress/route.h"
#include "gateway/egress/upstream.h"

namespace taskcell::gateway {

class ClientConnection;

// One attached cell: its listener, route, connections, and what it has used and done. Everything
// but Totals and Record belongs to the loop's thread.
class CellSession : public std::enable_shared_from_this<CellSession> {
 public:
  CellSession(EventLoop* loop, UpstreamClient* upstream, UniqueFd listener, uint16_t port,
              Route route);
  ~CellSession();

  Status Begin();
  // Drops every connection and transfer, closes the listener, wipes the credential.
  void End();
  // Closes connections whose time is over.
  void Tick();

  EgressTotals Totals() const;
  EgressRecord Record() const;

  // For its connections.
  EventLoop* loop() { return loop_; }
  UpstreamClient* upstream() { return upstream_; }
  const Route& route() const { return route_; }
  uint16_t port() const { return port_; }
  int64_t NowMs() const;

  // Counts one request; false when it is one too many.
  bool CountRequest();
  // Count bytes; false when the cell has used up what it may.
  bool CountUp(std::size_t bytes);
  bool CountDown(std::size_t bytes);
  // Counts body bytes held in memory; false, and nothing counted, over the limit.
  bool Hold(std::size_t bytes);
  void Release(std::size_t bytes) { held_bytes_ -= bytes; }

  void AddOffered(const std::vector<std::string>& tools);
  void AddRequest(EgressRequest request, bool is_refused, bool is_failed);
  void NoteEcho();
  void NoteRetryAfter(int64_t seconds);
  // Calls its Advance from the loop, if it still exists then.
  void AdvanceLater(ClientConnection* connection);
  // The connection is of no more use; it is destroyed after the current event.
  void Drop(ClientConnection* connection);

 private:
  void OnListener();
  void Open(UniqueFd fd);
  void SayFull(UniqueFd fd);

  EventLoop* loop_;
  UpstreamClient* upstream_;
  UniqueFd listener_;
  uint16_t port_;
  Route route_;
  EventLoop::Clock::time_point begun_;
  std::vector<std::unique_ptr<ClientConnection>> connections_;
  std::vector<std::unique_ptr<ClientConnection>> dropped_;
  std::size_t held_bytes_ = 0;

  mutable std::mutex mutex_;  // guards record_
  EgressRecord record_;
};

}  // namespace taskcell::gateway
