#include "launcher/mounts/link_scan.h"

#include <dirent.h>
#include <fcntl.h>

#include <array>
#include <cstring>

#include "launcher/mounts/component.h"
#include "launcher/mounts/entry.h"
#include "launcher/mounts/settled.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "launcher/sys/random.h"

namespace taskcell::mounts {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr std::size_t kBufferBytes = 16384;
}  // namespace

Result<LinkScan> LinkScan::Make(int agent_dir_fd, std::size_t max_entries, int max_depth) {
  std::array<unsigned char, sizeof(uint64_t)> bytes;
  TRY(sys::FillRandom(bytes));
  uint64_t seed = 0;
  std::memcpy(&seed, bytes.data(), sizeof seed);
  LinkScan scan(max_entries, seed);
  scan.entries_left_ = max_entries;
  scan.before_ = SettledBefore();
  scan.trusted_ = !HasForeignTimes(agent_dir_fd);
  for (std::string_view name : kAgentTrees) {
    Result<UniqueFd> top = OpenComponent(agent_dir_fd, std::string(name), kDirectory);
    if (top.ok()) TRY(scan.Directory(top->get(), max_depth));
  }
  return scan;
}

Status LinkScan::Directory(int fd, int levels_left) {
  struct statx info;
  TRY(sys::StatEntry(fd, "", 0, info));
  bool is_new = directories_.insert({sys::DeviceOf(info), info.stx_ino}).second;
  if (!is_new || levels_left == 0) trusted_ = false;
  if (!trusted_) return Ok();
  std::string records(kBufferBytes, '\0');
  while (trusted_) {
    std::size_t got = TRY(sys::ReadRecords(fd, records));
    if (got == 0) break;
    for (std::size_t at = 0; at < got && trusted_;) {
      const auto* record = reinterpret_cast<const struct dirent64*>(records.data() + at);
      at += record->d_reclen;
      const std::string_view name = record->d_name;
      if (name != "." && name != "..") TRY(Entry(fd, record->d_name, levels_left));
    }
  }
  return Ok();
}

Status LinkScan::Entry(int dir_fd, const char* name, int levels_left) {
  if (entries_left_ == 0) {
    trusted_ = false;
    return Ok();
  }
  --entries_left_;
  struct statx info;
  if (!sys::StatEntry(dir_fd, name, 0, info).ok()) return Ok();  // a name less was met
  if (S_ISREG(info.stx_mode) && info.stx_nlink > 1) return LinkedFile(dir_fd, name);
  if (!S_ISDIR(info.stx_mode)) return Ok();
  Result<UniqueFd> inner = OpenComponent(dir_fd, name, kDirectory);
  if (!inner.ok()) return Ok();  // the same: a mount, or not ours to read
  return Directory(inner->get(), levels_left - 1);
}

Status LinkScan::LinkedFile(int dir_fd, const char* name) {
  Result<UniqueFd> pinned = OpenComponent(dir_fd, name, O_PATH);
  if (!pinned.ok()) return Ok();  // as above; a mount on the name hides the file that has it
  struct stat info = TRY(sys::Stat(pinned->get()));
  if (!S_ISREG(info.st_mode) || info.st_nlink < 2) return Ok();
  uint64_t key = LinkKey(info.st_dev, info.st_ino, seed_);
  if (!MayBeCut(info.st_ctim)) linked_.insert(key);
  table_.Meet(key, static_cast<uint32_t>(info.st_nlink));
  return Ok();
}

bool LinkScan::MayBeClosed(uint64_t device, uint64_t inode) const {
  uint64_t key = LinkKey(device, inode, seed_);
  return trusted_ && linked_.contains(key) && !table_.IsOpen(key);
}

bool LinkScan::IsClosed(const struct stat& info) const {
  if (!MayBeClosed(info.st_dev, info.st_ino) || MayBeCut(info.st_ctim)) return false;
  return IsEarlier(info.st_ctim, before_);
}

}  // namespace taskcell::mounts
