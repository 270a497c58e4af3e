#pragma once

#include "gateway/egress/event_loop.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// One connection that a cell opened to one of its listeners. Everything is called in the loop's
// thread.
class CellConnection {
 public:
  virtual ~CellConnection() = default;
  virtual Status Begin() = 0;
  // Ends it when it waited too long.
  virtual void Tick(EventLoop::Clock::time_point now) = 0;
  // Goes on with what was received.
  virtual void Advance() {}
};

}  // namespace taskcell::gateway
