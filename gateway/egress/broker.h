#pragma once

#include <memory>

#include "gateway/egress/cell_ways.h"
#include "gateway/egress/purse.h"
#include "gateway/egress/record.h"
#include "gateway/egress/route.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

class BrokerLoop;
class CellSession;

// One cell's way to its provider. Destroying it detaches.
class BrokerCell {
 public:
  BrokerCell(std::shared_ptr<BrokerLoop> loop, std::shared_ptr<CellSession> session);
  ~BrokerCell();
  BrokerCell(const BrokerCell&) = delete;
  BrokerCell& operator=(const BrokerCell&) = delete;

  // The sums so far, at any time and from any thread: for step limits.
  EgressTotals Totals() const;

  // Everything so far, at any time and from any thread.
  EgressRecord Record() const;

  // Closes the listener, every connection and every transfer of the cell, then returns the whole
  // record. When it returns nothing of the cell is left in the broker and the credential is wiped.
  EgressRecord Detach();

 private:
  std::shared_ptr<BrokerLoop> loop_;
  std::shared_ptr<CellSession> session_;
};

// The provider broker: one thread and one event loop for all cells. It accepts on each cell's own
// loopback listener, so a connection's cell is known without any token, reads every request whole,
// judges it, builds a new one towards the route's fixed upstream with the one credential, and
// streams the answer back. Nothing a cell sends is ever forwarded as bytes.
class Broker {
 public:
  static Result<std::unique_ptr<Broker>> Start();
  ~Broker();  // detaches what is left and joins the thread
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // Takes over listening TCP sockets of the cell's network namespace. The broker serves them until
  // the returned cell is detached.
  Result<std::unique_ptr<BrokerCell>> Attach(CellWays ways);
  // The same for a cell with a route and no tunnels.
  Result<std::unique_ptr<BrokerCell>> Attach(UniqueFd listener, Route route);

  // What routes pay from.
  Purses& purses() { return purses_; }

 private:
  explicit Broker(std::shared_ptr<BrokerLoop> loop);
  std::shared_ptr<BrokerLoop> loop_;
  Purses purses_;
};

}  // namespace taskcell::gateway
