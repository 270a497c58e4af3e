#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "probe/delegate/change.h"
#include "probe/delegate/plan.h"

namespace taskcell::probe::delegate {

// What was changed, or is about to be, for one user.
struct Record {
  Target user;
  std::vector<Change> changes;  // in the order they are made
};

std::string ToJson(const Record& record);
// Reads what ToJson wrote; kViolation where it is not that. Pure.
Result<Record> ParseRecord(std::string_view json);

inline constexpr std::string_view kRecordDirectory = "/var/lib/taskcell-delegate";
inline constexpr std::size_t kMaxRecordFileBytes = 1U << 20U;

// The records on this machine, a file for each user, held by one process at a time.
class RecordStore {
 public:
  // Makes the directory below `root_fd` where it is missing. A directory that is not the caller's
  // own alone is kDenied; one that another process holds is kSystem.
  static Result<RecordStore> Open(int root_fd);

  // nullopt where there is none. A file that others than the caller could have written is kDenied.
  Result<std::optional<Record>> Read(uint32_t uid) const;
  // Those of all other users.
  Result<std::vector<Record>> Others(uint32_t uid) const;
  // Puts it in place whole, and on the disk.
  Status Write(const Record& record) const;
  // Takes it away.
  Status Remove(uint32_t uid) const;
  // Takes the directory away where it is empty.
  ~RecordStore();
  RecordStore(RecordStore&&) = default;

 private:
  RecordStore(UniqueFd above, UniqueFd directory)
      : above_(std::move(above)), directory_(std::move(directory)) {}

  UniqueFd above_;
  UniqueFd directory_;
};

}  // namespace taskcell::probe::delegate
