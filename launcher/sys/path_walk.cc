#include "launcher/sys/path_walk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount_id.h"

namespace taskcell::sys {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's own bound (path_resolution(7))
constexpr std::size_t kMaxComponents = 4096;
constexpr int kDirectory = O_PATH | O_DIRECTORY;

// A file, a directory or a link on the way.
struct Pin {
  UniqueFd fd;
  struct statx info = {};

  bool is_directory() const { return S_ISDIR(info.stx_mode); }
  bool is_link() const { return S_ISLNK(info.stx_mode); }
};

class PathWalk {
 public:
  PathWalk(std::string_view path, int flags, uint64_t resolve, mode_t mode)
      : path_(path), flags_(flags), resolve_(resolve), mode_(mode) {}

  Result<UniqueFd> Start(int dir_fd);

 private:
  bool Has(uint64_t rule) const { return (resolve_ & rule) != 0; }
  Error At(std::string_view name, int err) const {
    return FailureOf(err, Text("at '", Printable(name), "'"));
  }
  const Pin& Top() const { return levels_.back(); }

  Status Push(std::string_view path);
  Result<Pin> Take(Result<UniqueFd> opened, std::string_view name) const;
  Result<Pin> PinAt(const std::string& name) const;
  Status CheckMount(const Pin& pin, std::string_view name) const;
  Status ToRoot();
  Status ToParent();
  Status Follow(const Pin& link, const std::string& name);
  Status MayFollow(const Pin& link, const std::string& name) const;
  Status Step(const std::string& name);
  Result<UniqueFd> Itself();
  Result<UniqueFd> Last(const std::string& name);

  const std::string_view path_;
  const int flags_;
  const uint64_t resolve_;
  const mode_t mode_;
  std::vector<Pin> levels_;           // the directory it began in, and what was entered from there
  std::vector<std::string> waiting_;  // what is still to be resolved, the next component last
  uint64_t mount_ = 0;
  int links_ = 0;
};

Status PathWalk::Push(std::string_view path) {
  const std::vector<std::string_view> parts = Split(path, '/');
  for (std::size_t i = parts.size(); i > 0; --i) {
    if (!parts[i - 1].empty())
      waiting_.emplace_back(parts[i - 1]);
    else if (i == parts.size())
      waiting_.emplace_back(".");  // "name/" means a directory
  }
  if (waiting_.size() > kMaxComponents) return At(path, ENAMETOOLONG);
  return Ok();
}

Result<Pin> PathWalk::Take(Result<UniqueFd> opened, std::string_view name) const {
  if (!opened.ok()) return At(name, opened.error().err);
  Pin pin;
  pin.fd = std::move(opened).value();
  TRY(StatEntry(pin.fd.get(), "", AT_STATX_DONT_SYNC, pin.info));
  bool unknown_mount = (pin.info.stx_mask & STATX_MNT_ID) == 0;  // before Linux 5.8
  if (Has(RESOLVE_NO_XDEV) && unknown_mount)
    pin.info.stx_mnt_id = TRY(MountIdFromProc(pin.fd.get()));
  return pin;
}

Status PathWalk::CheckMount(const Pin& pin, std::string_view name) const {
  if (!Has(RESOLVE_NO_XDEV) || pin.info.stx_mnt_id == mount_) return Ok();
  return At(name, EXDEV);
}

Result<Pin> PathWalk::PinAt(const std::string& name) const {
  Pin pin = TRY(Take(OpenNoFollow(Top().fd.get(), name, O_PATH), name));
  TRY(CheckMount(pin, name));
  return pin;
}

// For a path or a link that begins with "/".
Status PathWalk::ToRoot() {
  if (Has(RESOLVE_BENEATH)) return At("/", EXDEV);
  if (Has(RESOLVE_IN_ROOT)) {
    levels_.resize(1);
    return Ok();
  }
  Pin root = TRY(Take(Open("/", kDirectory), "/"));
  TRY(CheckMount(root, "/"));
  levels_.clear();
  levels_.push_back(std::move(root));
  return Ok();
}

// Back the way it came: where the directory has been moved to meanwhile does not matter.
Status PathWalk::ToParent() {
  if (levels_.size() > 1) {
    levels_.pop_back();
    return Ok();
  }
  if (Has(RESOLVE_BENEATH)) return At("..", EXDEV);
  if (Has(RESOLVE_IN_ROOT)) return Ok();
  levels_[0] = TRY(Take(OpenNoFollow(Top().fd.get(), "..", kDirectory), ".."));
  return CheckMount(Top(), "..");
}

Status PathWalk::MayFollow(const Pin& link, const std::string& name) const {
  constexpr uint64_t kApparmorMagic = 0x5A3C69F0;
  constexpr uint64_t kProcRootInode = 1;
  constexpr uint64_t kNoSymfollow = 0x2000;  // ST_NOSYMFOLLOW, as statfs(2) tells it
  if (Has(RESOLVE_NO_SYMLINKS)) return At(name, ELOOP);
  struct statfs info = {};
  if (::fstatfs(link.fd.get(), &info) < 0) return Failure(Text("fstatfs '", Printable(name), "'"));
  const auto type = static_cast<uint64_t>(info.f_type);
  const struct statx& parent = Top().info;
  // Those beside "self" lead to names, as any other link does.
  const bool is_plain =
      parent.stx_ino == kProcRootInode && parent.stx_mnt_id == link.info.stx_mnt_id;
  if ((type == PROC_SUPER_MAGIC && !is_plain) || type == kApparmorMagic)
    return At(name, Has(RESOLVE_NO_MAGICLINKS) ? ELOOP : EXDEV);
  if ((static_cast<uint64_t>(info.f_flags) & kNoSymfollow) != 0) return At(name, ELOOP);
  const bool is_shared = (parent.stx_mode & S_ISVTX) != 0 && (parent.stx_mode & S_IWOTH) != 0;
  if (is_shared && link.info.stx_uid != ::geteuid() && link.info.stx_uid != parent.stx_uid)
    return At(name, EACCES);
  return Ok();
}

Status PathWalk::Follow(const Pin& link, const std::string& name) {
  TRY(MayFollow(link, name));
  if (++links_ > kMaxLinks) return At(name, ELOOP);
  std::string target = TRY(ReadLink(link.fd.get(), ""));
  if (target.empty()) return At(name, ENOENT);
  if (target[0] == '/') TRY(ToRoot());
  return Push(target);
}

// Enters a component that is not the last one.
Status PathWalk::Step(const std::string& name) {
  if (!Top().is_directory()) return At(name, ENOTDIR);
  if (name == ".") return Ok();
  if (name == "..") return ToParent();
  Pin pin = TRY(PinAt(name));
  if (pin.is_link()) return Follow(pin, name);
  levels_.push_back(std::move(pin));
  return Ok();
}

// Opens the directory the walk has come to.
Result<UniqueFd> PathWalk::Itself() {
  if ((flags_ & O_CREAT) != 0) return At(".", EISDIR);
  if ((flags_ & O_PATH) != 0) return std::move(levels_.back().fd);
  Result<UniqueFd> opened = OpenNoFollow(Top().fd.get(), ".", flags_);
  if (!opened.ok()) return At(".", opened.error().err);
  return opened;
}

// Opens the last component. No descriptor where that is a link: then there is more to resolve.
Result<UniqueFd> PathWalk::Last(const std::string& name) {
  if ((flags_ & O_CREAT) != 0) {
    Result<UniqueFd> made = OpenNoFollow(Top().fd.get(), name, flags_ | O_EXCL, mode_);
    if (made.ok()) return made;
    if (made.error().err != EEXIST || (flags_ & O_EXCL) != 0) return At(name, made.error().err);
  }
  // Looked at before it is opened, for a link, and for what is mounted there: a device, a FIFO.
  Pin pin = TRY(PinAt(name));
  if (pin.is_link() && (flags_ & O_NOFOLLOW) == 0) {
    TRY(Follow(pin, name));
    return UniqueFd();
  }
  if ((flags_ & O_DIRECTORY) != 0 && !pin.is_directory()) return At(name, ENOTDIR);
  if ((flags_ & O_PATH) != 0) return std::move(pin.fd);
  Pin opened = TRY(Take(OpenNoFollow(Top().fd.get(), name, flags_ & ~O_CREAT), name));
  TRY(CheckMount(opened, name));
  return std::move(opened.fd);
}

Result<UniqueFd> PathWalk::Start(int dir_fd) {
  if (path_.empty()) return At("", ENOENT);
  const bool from_root = path_[0] == '/' && !Has(RESOLVE_BENEATH) && !Has(RESOLVE_IN_ROOT);
  levels_.push_back(
      TRY(Take(from_root ? Open("/", kDirectory) : OpenNoFollow(dir_fd, ".", kDirectory), path_)));
  mount_ = Top().info.stx_mnt_id;
  if (path_[0] == '/' && !from_root) TRY(ToRoot());
  TRY(Push(path_));
  while (!waiting_.empty()) {
    const std::string name = std::move(waiting_.back());
    waiting_.pop_back();
    const bool is_last = waiting_.empty() && name != "." && name != ".." && Top().is_directory();
    if (!is_last) {
      TRY(Step(name));
      continue;
    }
    Result<UniqueFd> opened = Last(name);
    if (!opened.ok() || opened->valid()) return opened;
  }
  return Itself();
}

}  // namespace

Result<UniqueFd> WalkPath(int dir_fd, const std::string& path, int flags, uint64_t resolve,
                          mode_t mode) {
  // Without rules it is openat(2) itself.
  if (resolve == 0) {
    UniqueFd opened(::openat(dir_fd, path.c_str(), flags | O_CLOEXEC, mode));
    if (opened.valid()) return opened;
    return Failure("openat");
  }
  return PathWalk(path, flags, resolve, mode).Start(dir_fd);
}

}  // namespace taskcell::sys
