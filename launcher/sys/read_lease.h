#pragma once

#include <cstdint>

namespace taskcell::sys {

// A read lease on a file (F_SETLEASE in fcntl(2)): as long as it is held, nobody has the file open
// for writing or mapped to write through, and whoever opens it to write or truncate waits for the
// lease to end.
class ReadLease {
 public:
  enum class State : uint8_t {
    kHeld,
    kWriters,  // somebody has the file open for writing
    kNone,     // not on this file: it is another user's, or its file system grants none
  };

  // Asks for a lease on `fd`, open for reading only, which must outlive this object.
  explicit ReadLease(int fd);
  ~ReadLease();
  ReadLease(const ReadLease&) = delete;
  ReadLease& operator=(const ReadLease&) = delete;

  State state() const { return state_; }
  // True when it was held, and somebody has come to write since: he may have done so already, if
  // he has waited for /proc/sys/fs/lease-break-time.
  bool IsBroken() const;

 private:
  const int fd_;
  State state_ = State::kNone;
};

}  // namespace taskcell::sys
