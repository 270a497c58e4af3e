#include "launcher/mounts/inventory.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <set>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/entry.h"
#include "launcher/mounts/settled.h"
#include "launcher/sys/entry.h"

namespace taskcell::mounts {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr std::size_t kBufferBytes = 16384;

class InventoryWalk {
 public:
  InventoryWalk(std::size_t max_entries, int max_depth)
      : entries_left_(max_entries), max_depth_(max_depth) {}

  Result<bool> Top(int agent_dir) {
    for (std::string_view name : TRY(ListedEntries(agent_dir))) Put(name);
    for (const AllowedEntry& allowed : kAgentEntries) {
      if (!TRY(Entry(agent_dir, std::string(allowed.name).c_str(), 0))) return false;
    }
    return true;
  }

  Inventory Take() { return std::move(inventory_); }

 private:
  void Put(std::string_view text) { inventory_.text.append(text).push_back('\0'); }

  void Put(const struct statx& info) {
    struct timespec changed = {};
    changed.tv_sec = info.stx_ctime.tv_sec;
    changed.tv_nsec = info.stx_ctime.tv_nsec;
    const struct timespec latest = LatestOf(changed);
    if (IsEarlier(inventory_.newest, latest)) inventory_.newest = latest;
    Put(Text(info.stx_mode, " ", info.stx_uid, " ", info.stx_gid, " ", sys::DeviceOf(info), " ",
             info.stx_mnt_id, " ", info.stx_ino, " ", info.stx_nlink, " ", info.stx_size, " ",
             int64_t{changed.tv_sec}, " ", int64_t{changed.tv_nsec}));
  }

  // False where the walk cannot say it all.
  Result<bool> Entry(int dir_fd, const char* name, int depth) {
    if (entries_left_ == 0) return false;
    --entries_left_;
    Put(name);
    struct statx info;
    Status seen = sys::StatEntry(dir_fd, name, 0, info);
    if (!seen.ok()) {
      if (seen.error().err != ENOENT) return false;
      Put("absent");
      return true;
    }
    Put(info);
    if (!S_ISDIR(info.stx_mode)) return true;
    Result<UniqueFd> inner = OpenComponent(dir_fd, name, kDirectory);
    if (!inner.ok()) return false;
    struct statx opened;
    TRY(sys::StatEntry(inner->get(), "", 0, opened));
    if (opened.stx_ino != info.stx_ino || sys::DeviceOf(opened) != sys::DeviceOf(info))
      return false;
    return Directory(inner->get(), depth + 1);
  }

  Result<bool> Directory(int fd, int depth) {
    if (depth > max_depth_) return false;
    std::string records(kBufferBytes, '\0');
    while (std::size_t got = TRY(sys::ReadRecords(fd, records))) {
      for (std::size_t at = 0; at < got;) {
        const auto* record = reinterpret_cast<const struct dirent64*>(records.data() + at);
        at += record->d_reclen;
        std::string_view name = record->d_name;
        if (name == "." || name == "..") continue;
        if (!TRY(Entry(fd, record->d_name, depth))) return false;
      }
    }
    Put("");  // the end: what follows is of the directory above
    return true;
  }

  Inventory inventory_;
  std::size_t entries_left_;
  const int max_depth_;
};

}  // namespace

Result<std::optional<Inventory>> TakeInventory(int agent_dir_fd, std::size_t max_entries,
                                               int max_depth) {
  InventoryWalk walk(max_entries, max_depth);
  if (!TRY(walk.Top(agent_dir_fd))) return std::optional<Inventory>();
  return std::optional<Inventory>(walk.Take());
}

}  // namespace taskcell::mounts
