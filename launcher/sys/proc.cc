#include "launcher/sys/proc.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount_id.h"
#include "launcher/sys/self.h"

namespace taskcell::sys {
namespace {

// "self" is a link by name, which may be followed.
constexpr uint64_t kResolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

// What is written or believed of the sysctls, as below /proc.
constexpr const char* kSysctls[] = {"/sys/kernel/core_pattern", "/sys/user/max_user_namespaces",
                                    "/sys/user/max_inotify_instances",
                                    "/sys/user/max_inotify_watches"};

Error Covered(std::string_view path) {
  return Error(Kind::kViolation,
               Text("something is mounted over '", Printable(path),
                    "', and what is read or written there may not be the kernel's: unmount it, or "
                    "start this where /proc is whole"),
               EXDEV);
}

bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || path[directory.size()] == '/';
}

// Whether a mount at `place`, below /proc, hides what this process uses. `self` is what the link of
// that name leads to.
bool HidesWhatIsUsed(std::string_view place, const std::string& self) {
  for (const std::string& own : {"/" + self, std::string("/self"), std::string("/thread-self")}) {
    if (IsAtOrBelow(place, own)) return true;
  }
  for (std::string_view sysctl : kSysctls) {
    if (IsAtOrBelow(sysctl, place)) return true;
  }
  return false;
}

// Where below the mount `base`.
std::string_view Below(const MountInfoLine& base, const MountInfoLine& line) {
  const std::string_view place = line.mount_point;
  return place.starts_with(base.mount_point) ? place.substr(base.mount_point.size()) : place;
}

// The mounts on it, and on parts of it that are mounted where they are anyway, as an engine or
// systemd makes them read-only. What is mounted on these others is of no matter.
std::vector<const MountInfoLine*> OtherMountsIn(const MountInfoLine& base,
                                                const std::vector<MountInfoLine>& lines) {
  std::set<uint64_t> same = {base.id};
  std::vector<const MountInfoLine*> others;
  // Until no more of it is found: a mount that was moved stands before the one it was moved to.
  for (std::size_t known = 0; known != same.size();) {
    known = same.size();
    others.clear();
    for (const MountInfoLine& line : lines) {
      if (!same.contains(line.parent) || line.id == base.id) continue;
      const bool is_part =
          line.root == Below(base, line) && line.major == base.major && line.minor == base.minor;
      if (is_part)
        same.insert(line.id);
      else
        others.push_back(&line);
    }
  }
  return others;
}

}  // namespace

Result<Proc> Proc::Open() {
  UniqueFd fd = TRY(sys::Open("/proc", O_PATH | O_DIRECTORY));
  if (TRY(FileSystemOf(fd.get())).type == PROC_SUPER_MAGIC) return Proc(std::move(fd));
  return Error(Kind::kViolation,
               "'/proc' is not the kernel's process file system: mount it there (mount -t proc "
               "proc /proc), or start this where it is");
}

Result<UniqueFd> Proc::Open(const std::string& name, int flags) const {
  Result<UniqueFd> opened = OpenAt2(fd_.get(), name, flags, kResolve);
  if (!opened.ok() && opened.error().err == EXDEV) return Covered("/proc/" + name);
  return std::move(opened).With("'/proc'");
}

Result<std::string> Proc::Read(const std::string& name, std::size_t limit) const {
  UniqueFd file = TRY(Open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  return ReadAll(file.get(), limit).With(Text("read '/proc/", Printable(name), "'"));
}

Status Proc::Write(const std::string& name, std::string_view data) const {
  UniqueFd file = TRY(Open(name, O_WRONLY | O_NOFOLLOW));
  return WriteAll(file.get(), data).With(Text("write '/proc/", Printable(name), "'"));
}

Result<std::string> ReadProc(const std::string& name, std::size_t limit) {
  Proc proc = TRY(Proc::Open());
  return proc.Read(name, limit);
}

Status CheckProc() {
  Proc proc = TRY(Proc::Open());
  const std::string self = TRY(ReadLink(proc.fd(), "self"));
  const uint64_t own = TRY(MountIdOf(proc.fd()));
  const std::string text = TRY(proc.Read("self/mountinfo", kMaxMountInfoBytes));
  const std::vector<MountInfoLine> lines = TRY(ParseMountInfo(text));
  auto base = std::find_if(lines.begin(), lines.end(),
                           [&](const MountInfoLine& line) { return line.id == own; });
  if (base == lines.end()) return Error(Kind::kViolation, "'/proc' is in no mount of this process");
  const std::vector<const MountInfoLine*> others = OtherMountsIn(*base, lines);
  for (const MountInfoLine* other : others) {
    if (HidesWhatIsUsed(Below(*base, *other), self)) return Covered(other->mount_point);
  }
  return Ok();
}

}  // namespace taskcell::sys
