#include "probe/mounts/worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/entry.h"

namespace taskcell::probe::audit {
namespace {

constexpr unsigned kCountBatch = 256;
constexpr std::size_t kMaxHandedBytes = 8192;  // of a task: its path, and what is above it
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NONBLOCK;

// EACCES and the like: nothing is known of it; otherwise it is not what it was a moment ago.
Code MissOf(int err) {
  switch (err) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EAGAIN:
    case ESTALE:
    case EXDEV:
      return Code::kChanged;
    default:
      return Code::kUnreadable;
  }
}

}  // namespace

Identity IdentityOf(const struct statx& info) {
  return {sys::DeviceOf(info), info.stx_ino, info.stx_mnt_id, info.stx_ctime.tv_sec,
          info.stx_ctime.tv_nsec};
}

bool IsSameInode(const Identity& a, const Identity& b) {
  return a.inode == b.inode && a.device == b.device && a.mount == b.mount;
}

bool IsUnchanged(const Identity& a, const Identity& b) {
  return IsSameInode(a, b) && a.changed_s == b.changed_s && a.changed_ns == b.changed_ns;
}

std::string JoinPath(std::string directory, std::string_view name) {
  if (!directory.empty()) directory += '/';
  directory += name;
  return directory;
}

std::string Met::Path() const { return JoinPath(where.Directory(), name); }

std::string Worker::Place() const {
  std::scoped_lock lock(path_mutex_);
  return path_;
}

void Worker::Run() {
  while (std::optional<Task> task = state_.pool.Take()) {
    busy_.store(true, std::memory_order_relaxed);
    Begin(std::move(*task));
    Walk();
    FlushCount();
    busy_.store(false, std::memory_order_relaxed);
  }
}

void Worker::Begin(Task task) {
  {
    std::scoped_lock lock(path_mutex_);
    path_ = std::move(task.path);
  }
  frames_.clear();
  base_depth_ = task.depth;
  base_above_ = std::move(task.above);
  for (Slot& slot : slots_) slot.owner = kNobody;
  Push(std::move(task.fd), "", task.identity, task.fine);
}

void Worker::Push(UniqueFd fd, std::string_view name, const Identity& identity, bool fine) {
  if (!name.empty()) {
    std::scoped_lock lock(path_mutex_);
    if (!path_.empty()) path_ += '/';
    path_ += name;
  }
  frames_.push_back({identity, 0, static_cast<uint32_t>(path_.size()), fine});
  Slot& slot = SlotOf(frames_.size() - 1);
  slot.owner = frames_.size() - 1;
  slot.fd = std::move(fd);
  slot.at = slot.end = 0;
  if (slot.records == nullptr) slot.records = std::make_unique<char[]>(kBufferBytes);
  if (!state_.visitor.Enter(slot.fd.get(), *this)) frames_.back().fine = false;
}

bool Worker::Refill(Slot& slot) {
  Result<std::size_t> got = sys::ReadRecords(slot.fd.get(), {slot.records.get(), kBufferBytes});
  if (!got.ok()) {
    state_.visitor.Miss(MissOf(got.error().err), Directory(), got.error().text);
    return false;
  }
  slot.at = 0;
  slot.end = got.value();
  return slot.end > 0;
}

void Worker::Walk() {
  while (!frames_.empty() && !state_.stopped.load(std::memory_order_relaxed)) {
    Slot& slot = SlotOf(frames_.size() - 1);
    if (slot.at == slot.end && !Refill(slot)) {
      Leave();
      continue;
    }
    const auto* record = reinterpret_cast<const struct dirent64*>(slot.records.get() + slot.at);
    slot.at += record->d_reclen;
    frames_.back().offset = record->d_off;
    const char* name = record->d_name;
    bool is_dots = name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
    if (!is_dots) MeetEntry(slot.fd.get(), name);
  }
}

// False where one more is too many; then the walk is over.
bool Worker::CountEntry() {
  steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (state_.max_entries == UINT64_MAX) {
    if (++uncounted_ == kCountBatch) FlushCount();
    return true;
  }
  // One by one: what another thread may still meet of a batch must neither end the walk nor pass
  // the bound.
  if (state_.entries.fetch_add(1, std::memory_order_relaxed) < state_.max_entries) return true;
  state_.entries.fetch_sub(1, std::memory_order_relaxed);
  state_.too_many = true;
  state_.stopped = true;
  state_.pool.Stop();
  return false;
}

void Worker::FlushCount() {
  state_.entries.fetch_add(std::exchange(uncounted_, 0), std::memory_order_relaxed);
}

void Worker::MeetEntry(int dir_fd, const char* name) {
  if (!CountEntry()) return;
  struct statx info;
  Status looked = sys::StatEntry(dir_fd, name, state_.sync, info);
  if (!looked.ok()) {
    int err = looked.error().err;
    state_.visitor.Miss(MissOf(err), JoinPath(Directory(), name),
                        err == ENOENT ? "it vanished" : looked.error().text);
    return;
  }
  const Frame& frame = frames_.back();
  bool other_mount = info.stx_mnt_id != frame.identity.mount;
  bool fine = state_.visitor.Meet({dir_fd, name, info, *this, frame.identity.device, number_,
                                   other_mount, info.stx_mnt_id != state_.mount, !frame.fine});
  if (!S_ISDIR(info.stx_mode)) return;
  if (other_mount && state_.crossing == mounts::Crossing::kNever) return;
  if (other_mount && IsAbove(info)) {
    state_.visitor.Miss(Code::kMountLoop, JoinPath(Directory(), name),
                        "it shows a directory above itself; not entered");
    return;
  }
  EnterDirectory(dir_fd, name, info, fine && frame.fine);
}

// What is mounted below itself is met again and again.
bool Worker::IsAbove(const struct statx& info) const {
  const Identity seen = IdentityOf(info);
  const auto is_it = [&seen](uint64_t device, uint64_t inode) {
    return inode == seen.inode && device == seen.device;
  };
  return std::any_of(base_above_.begin(), base_above_.end(),
                     [&is_it](const Ancestor& each) { return is_it(each.device, each.inode); }) ||
         std::any_of(frames_.begin(), frames_.end(), [&is_it](const Frame& each) {
           return is_it(each.identity.device, each.identity.inode);
         });
}

// Only where what is met may be one of them: at a mount that is entered.
std::vector<Ancestor> Worker::Above() const {
  if (state_.crossing == mounts::Crossing::kNever) return {};
  std::vector<Ancestor> above = base_above_;
  above.reserve(above.size() + frames_.size());
  for (const Frame& frame : frames_) above.push_back({frame.identity.device, frame.identity.inode});
  return above;
}

// Gives the directory `fd` to a worker that has none; false where none wants one.
bool Worker::HandOver(UniqueFd& fd, const char* name, const struct statx& info, bool fine) {
  if (!state_.pool.wants()) return false;
  std::string path = JoinPath(Directory(), name);
  std::vector<Ancestor> above = Above();
  if (path.size() + above.size() * sizeof(Ancestor) > kMaxHandedBytes) return false;
  const unsigned depth = base_depth_ + static_cast<unsigned>(frames_.size());
  state_.pool.Give(
      {std::move(fd), std::move(path), depth, fine, IdentityOf(info), std::move(above)});
  return true;
}

void Worker::EnterDirectory(int dir_fd, const char* name, const struct statx& info, bool fine) {
  unsigned depth = base_depth_ + static_cast<unsigned>(frames_.size());
  if (depth > kMaxDepth || path_.size() + std::strlen(name) >= kMaxPathBytes) {
    state_.visitor.Miss(
        Code::kTooDeep, JoinPath(Directory(), name),
        Text("more than ", kMaxDepth, " directories or ", kMaxPathBytes, " bytes of path deep"));
    return;
  }
  Result<UniqueFd> opened = mounts::OpenComponent(dir_fd, name, kDirectory, state_.crossing);
  if (!opened.ok()) {
    state_.visitor.Miss(MissOf(opened.error().err), JoinPath(Directory(), name),
                        opened.error().text);
    return;
  }
  UniqueFd fd = std::move(opened).value();
  if (!HandOver(fd, name, info, fine)) Push(std::move(fd), name, IdentityOf(info), fine);
}

void Worker::CheckUnchanged(int fd) {
  struct statx now;
  Status looked = sys::StatEntry(fd, "", state_.sync, now);
  if (looked.ok() && IsUnchanged(IdentityOf(now), frames_.back().identity)) return;
  state_.visitor.Miss(
      Code::kChanged, Directory(),
      looked.ok() ? "the directory was changed while it was read" : looked.error().text);
}

void Worker::Leave() {
  Slot& slot = SlotOf(frames_.size() - 1);
  CheckUnchanged(slot.fd.get());
  UniqueFd left = std::move(slot.fd);
  slot.owner = kNobody;
  frames_.pop_back();
  if (!frames_.empty()) {
    std::scoped_lock lock(path_mutex_);
    path_.resize(frames_.back().path_bytes);
  }
  if (frames_.empty() || SlotOf(frames_.size() - 1).owner == frames_.size() - 1) return;
  if (Reopen(left.get())) return;
  state_.visitor.Miss(Code::kChanged, Directory(),
                      "it was moved while it was walked; what was left of it is not judged");
  frames_.clear();
}

// Opens the directory on top again from one of its own: its slot was taken by a deeper one.
bool Worker::Reopen(int child_fd) {
  Result<UniqueFd> opened = sys::OpenNoFollow(child_fd, "..", kDirectory);
  if (!opened.ok()) return false;
  struct statx now;
  if (!sys::StatEntry(opened->get(), "", state_.sync, now).ok()) return false;
  const Frame& frame = frames_.back();
  if (!IsSameInode(IdentityOf(now), frame.identity)) return false;
  if (!sys::SeekRecords(opened->get(), frame.offset).ok()) return false;
  Slot& slot = SlotOf(frames_.size() - 1);
  slot.owner = frames_.size() - 1;
  slot.fd = std::move(opened).value();
  slot.at = slot.end = 0;
  return true;
}

}  // namespace taskcell::probe::audit
