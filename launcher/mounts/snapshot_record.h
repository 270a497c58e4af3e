#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/mounts/snapshot.h"

namespace taskcell::mounts {

// What stands beside a stored snapshot: what it is a copy of, and when that is known to hold.
struct SnapshotRecord {
  // Device and inode numbers mean something within one boot only, and what was written before a
  // crash may have never reached the disk.
  std::string boot_id;
  int64_t clock_offset_ms = 0;  // sys::ClockOffsetMs() before the copy
  SnapshotBounds bounds;
  std::string inventory;
  Snapshot snapshot;
};

// /proc/sys/kernel/random/boot_id.
Result<std::string> BootId();

// What one text in it may take, the inventory aside.
inline constexpr std::size_t kMaxRecordText = 65536;
// What one record may take: kMaxSnapshotEntries names of 255 bytes with their numbers.
inline constexpr std::size_t kMaxRecordBytes = 16U << 20U;
// An Error where ParseRecord would not take what was encoded.
Result<std::string> EncodeRecord(const SnapshotRecord& record);
Result<SnapshotRecord> ParseRecord(std::string_view bytes);

}  // namespace taskcell::mounts
