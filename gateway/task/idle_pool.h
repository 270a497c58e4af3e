#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace taskcell::gateway {

// Keeps what a task used for itself alone and what the next one may use: it costs time to make.
// Any thread.
template <typename T>
class IdlePool {
 public:
  // At most so many wait for somebody; of more the one that waited longest goes.
  static constexpr std::size_t kMaxIdle = 4;

  // One that was made under `key` and nobody uses, or else what `make` returns. It is back here
  // when the last owner lets it go, or gone where this pool is.
  std::shared_ptr<T> Take(const std::string& key, const std::function<std::unique_ptr<T>()>& make) {
    std::unique_ptr<T> taken = state_->Find(key);
    if (taken == nullptr) taken = make();
    T* const plain = taken.release();
    return std::shared_ptr<T>(plain, [key, state = std::weak_ptr<State>(state_)](T* used) {
      std::unique_ptr<T> owned(used);
      if (const std::shared_ptr<State> pool = state.lock()) pool->Add(key, std::move(owned));
    });
  }

 private:
  struct State {
    std::unique_ptr<T> Find(const std::string& key) {
      std::lock_guard lock(mutex);
      for (auto at = idle.begin(); at != idle.end(); ++at) {
        if (at->first != key) continue;
        std::unique_ptr<T> found = std::move(at->second);
        idle.erase(at);
        return found;
      }
      return nullptr;
    }

    void Add(const std::string& key, std::unique_ptr<T> owned) {
      std::unique_ptr<T> oldest;  // it may take a while to go: not with the lock held
      std::lock_guard lock(mutex);
      idle.emplace_front(key, std::move(owned));
      if (idle.size() <= kMaxIdle) return;
      oldest = std::move(idle.back().second);
      idle.pop_back();
    }

    std::mutex mutex;
    std::list<std::pair<std::string, std::unique_ptr<T>>> idle;  // the last used first
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace taskcell::gateway
