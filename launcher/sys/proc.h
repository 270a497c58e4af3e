#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// The kernel's files of /proc, and none that somebody mounted in their place: a write that is meant
// for one of them would go to a file of theirs (CVE-2019-16884, CVE-2019-19921, CVE-2025-52881).
class Proc {
 public:
  // What is mounted at /proc; kViolation where that is no procfs.
  static Result<Proc> Open();

  // A file by its name below /proc, such as "self/uid_map". No mount on the way to it, or on it, is
  // entered: kViolation with err EXDEV names it. No magic link is followed.
  Result<UniqueFd> Open(const std::string& name, int flags) const;
  // Reads it whole, at most `limit` bytes.
  Result<std::string> Read(const std::string& name, std::size_t limit) const;
  // Writes `data` into it.
  Status Write(const std::string& name, std::string_view data) const;

  // The root of a procfs that was mounted by this process.
  explicit Proc(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

// Proc::Open and Read in one.
Result<std::string> ReadProc(const std::string& name, std::size_t limit);

// Refuses (kViolation) a /proc where something that is not the same part of it is mounted over this
// process's own directory, or over a sysctl that a cell depends on: so that the magic links of the
// one (fd, exe, ns) and the other can be used by their names. Masks of other parts are fine.
// To be called before the first of them is used.
Status CheckProc();

}  // namespace taskcell::sys
