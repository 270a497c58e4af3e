#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

inline constexpr char kBusFile[] = "bus_queue.jsonl";
inline constexpr std::size_t kMaxBusBytes = 32U << 20U;

// <home>/bus_queue.jsonl, held still: as long as this object lives it holds the lock that the
// platform's programs take before they write to it (bus_queue.jsonl.lock).
class BusFile {
 public:
  // Which state of the file was seen.
  struct Stamp {
    uint64_t inode = 0;  // 0: there is none
    int64_t size = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp& other) const = default;
  };
  static Result<Stamp> Look(const Home& home);

  // Locks the file and reads it; one that is not there is empty. kConfig, with what to do, when it
  // is no plain file or larger than kMaxBusBytes.
  static Result<BusFile> Open(const Home& home);

  // Its lines, without empty ones. The last one counts only when it is whole: it has its newline,
  // or is one JSON object.
  const std::vector<std::string>& lines() const { return lines_; }
  const Stamp& stamp() const { return stamp_; }

  // Puts a file with these lines alone in its place, whole or not at all. Nothing is done and false
  // returned where somebody wrote to it since it was read, without the lock.
  Result<bool> Replace(const std::vector<std::string>& lines);

  // Appends a text of whole lines; the file is made (0600) where it is missing.
  Status Append(const std::string& text);

  // What Replace put another in the place of, and how much of that was read: a writer that had it
  // open without the lock may write to it still.
  struct Replaced {
    UniqueFd file;
    int64_t size = 0;
  };
  Replaced TakeReplaced() { return std::move(replaced_); }

 private:
  BusFile(const Home& home, UniqueFd lock) : home_(&home), lock_(std::move(lock)) {}

  const Home* home_;
  UniqueFd lock_;
  UniqueFd file_;  // invalid: there is none
  Stamp stamp_;
  mode_t mode_ = 0600;
  std::vector<std::string> lines_;
  std::string rest_;  // behind the last newline, not whole
  bool ends_with_newline_ = true;
  Replaced replaced_;
};

// What was written to a file behind what was read of it; empty for most.
Result<std::string> ReadLate(const BusFile::Replaced& replaced);

}  // namespace taskcell::gateway
