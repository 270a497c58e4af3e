#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "gateway/egress/broker.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// Watches a running job from beside it and cancels it when its caller asks, when the broker has
// counted more steps than allowed, or when the provider sent the credential back. One thread; the
// destructor ends it. `gate` and `broker` (nullptr: there is none) must outlive the object and stay
// where they are.
class JobWatch {
 public:
  // `cancel_fd` becomes readable to cancel; -1: never.
  static Result<std::unique_ptr<JobWatch>> Start(const gate::GateHost& gate,
                                                 const BrokerCell* broker, int cancel_fd,
                                                 uint64_t max_steps);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  bool cancelled() const { return cancelled_; }
  bool over_steps() const { return over_steps_; }

 private:
  explicit JobWatch(UniqueFd stop) : stop_(std::move(stop)) {}
  void Run(const gate::GateHost& gate, const BrokerCell* broker, int cancel_fd, uint64_t max_steps);

  UniqueFd stop_;  // eventfd
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> over_steps_ = false;
  std::thread thread_;
};

}  // namespace taskcell::gateway
