#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "gateway/config/task_kind.h"

namespace taskcell::gateway {

// Which agents came by which path that the sandbox does not cover, as long as this object lives.
// Any thread may ask.
class UncoveredPaths {
 public:
  // True the first time for each agent and kind.
  bool IsFirst(const std::string& agent, TaskKind kind) {
    std::lock_guard lock(mutex_);
    return seen_.emplace(agent, kind).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, TaskKind>> seen_;
};

}  // namespace taskcell::gateway
