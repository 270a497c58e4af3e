#include "probe/mounts/pool.h"

#include <utility>

namespace taskcell::probe::audit {

void Pool::Give(Task task) {
  {
    std::scoped_lock lock(mutex_);
    if (over_) return;
    tasks_.push_back(std::move(task));
    queued_.store(static_cast<unsigned>(tasks_.size()), std::memory_order_relaxed);
    if (waiting_ == 0) return;
  }
  changed_.notify_one();
}

std::optional<Task> Pool::Take() {
  std::unique_lock lock(mutex_);
  if (tasks_.empty() && ++waiting_ == workers_) {
    over_ = true;
    changed_.notify_all();
    return std::nullopt;
  }
  if (tasks_.empty()) {
    changed_.wait(lock, [this] { return over_ || !tasks_.empty(); });
    if (over_) return std::nullopt;
    --waiting_;
  }
  if (over_) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  queued_.store(static_cast<unsigned>(tasks_.size()), std::memory_order_relaxed);
  return task;
}

void Pool::Stop() {
  std::scoped_lock lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

}  // namespace taskcell::probe::audit
