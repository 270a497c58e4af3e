#pragma once

#include <cstdlib>
#include <string_view>
#include <utility>
#include <variant>

#include "launcher/base/error.h"

namespace taskcell {

// A value or an Error. Reading the side that is not there aborts; dropping one is a compile error.
template <typename T>
class [[nodiscard]] Result {
 public:
  // `return value;` and `return Error(...);` are the point of both.
  // NOLINTNEXTLINE(google-explicit-constructor): see above
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): see above
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }

  T& value() & { return *Get<0>(&state_); }
  const T& value() const& { return *Get<0>(&state_); }
  T&& value() && { return std::move(*Get<0>(&state_)); }
  T* operator->() { return Get<0>(&state_); }
  const T* operator->() const { return Get<0>(&state_); }

  const Error& error() const& { return *Get<1>(&state_); }
  Error&& error() && { return std::move(*Get<1>(&state_)); }

  // Returns the same result; an error has `intent` put before its text.
  Result With(std::string_view intent) && {
    if (ok()) return std::move(*this);
    return std::move(*this).error().With(intent);
  }

 private:
  template <std::size_t kSide, typename State>
  static auto* Get(State* state) {
    if (state->index() != kSide) std::abort();
    return std::get_if<kSide>(state);
  }

  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status Ok() { return std::monostate{}; }

}  // namespace taskcell

// Yields the value of a Result, or returns its Error from the enclosing function.
#define TRY(expr)                                                 \
  __extension__({                                                 \
    auto try_result_ = (expr);                                    \
    if (!try_result_.ok()) return std::move(try_result_).error(); \
    std::move(try_result_).value();                               \
  })
