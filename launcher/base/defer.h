#pragma once

#include <utility>

namespace taskcell {

// Runs `action` at the end of the scope. Neither copied nor moved, so it runs exactly once.
template <typename Action>
class [[nodiscard]] Defer {
 public:
  explicit Defer(Action action) : action_(std::move(action)) {}
  ~Defer() { action_(); }
  Defer(const Defer&) = delete;
  Defer& operator=(const Defer&) = delete;

 private:
  Action action_;
};

}  // namespace taskcell
