#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// One thread's epoll loop: descriptors with handlers, one timer, a regular tick, and work handed
// over from other threads. All but Post and Stop belong to the thread that runs it.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Handler = std::function<void(uint32_t events)>;

  static Result<std::unique_ptr<EventLoop>> Make();

  // Calls `handler` with the epoll events of `fd` until Forget. An event that was already fetched
  // when its descriptor was forgotten is dropped, also when the number is in use again.
  Status Watch(int fd, uint32_t events, Handler handler);
  void Change(int fd, uint32_t events);
  void Forget(int fd);

  // The one timer; replaces the one before. Nothing stops it.
  void SetTimer(std::optional<Clock::time_point> when, std::function<void()> action);
  // Called about once a second, for time-outs.
  void SetTick(std::function<void()> tick) { tick_ = std::move(tick); }

  // Runs `work` in the loop's thread soon, from any thread. False once the loop has ended.
  bool Post(std::function<void()> work);
  // Ends Run after the work posted so far; from any thread.
  void Stop() { stops_ = true, Wake(); }

  // Serves until Stop. Everything posted before it returns has run; nothing is taken after.
  Status Run();

 private:
  EventLoop() = default;
  void Wake();
  int TimeoutMs() const;
  void RunPosted();
  Status ServeOnce();

  struct Entry {
    uint32_t generation = 0;
    uint32_t events = 0;
    std::shared_ptr<Handler> handler;
  };
  UniqueFd epoll_;
  UniqueFd wake_read_;
  UniqueFd wake_write_;
  std::map<int, Entry> entries_;
  uint32_t last_generation_ = 0;
  std::optional<Clock::time_point> timer_;
  std::function<void()> timer_action_;
  std::function<void()> tick_;
  Clock::time_point next_tick_;

  std::atomic<bool> stops_{false};
  std::mutex mutex_;  // guards what follows
  std::vector<std::function<void()>> posted_;
  bool ended_ = false;
};

}  // namespace taskcell::gateway
