#pragma once

#include <unistd.h>

#include <utility>

namespace taskcell {

// Owns one file descriptor, or none (-1). Moving out leaves none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Closes what is owned and owns `fd` instead. Linux frees the number even when close says EINTR:
  // never retried.
  void Reset(int fd = -1) {
    int old = std::exchange(fd_, fd);
    if (old >= 0 && old != fd)
      (void)::close(old);  // ignoring: nothing can be done, the number is free either way
  }

  // Gives the descriptor up to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace taskcell
