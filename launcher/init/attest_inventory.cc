#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "launcher/base/text.h"
#include "launcher/init/attest.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::init {
namespace {

constexpr std::size_t kMaxProcEntries = 4096;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxDeviceEntries = 4096;  // of one directory
constexpr int kMaxDeviceDepth = 8;

// Links are not followed: where they lead is looked at in its own place. What is mounted on a file
// is not seen in its directory's entry, but AttestMounts sees it.
Status AddDevices(int directory, const std::string& path, int depth,
                  cell::InsideAttestation& seen) {
  if (depth > kMaxDeviceDepth) {
    return Error(Kind::kViolation, Text("'", Printable(path), "' is too deep"));
  }
  for (const sys::DirectoryEntry& entry : TRY(sys::ReadDirectory(directory, kMaxDeviceEntries))) {
    std::string below = Text(path, "/", entry.name);
    if (entry.type == DT_CHR || entry.type == DT_BLK || entry.type == DT_UNKNOWN) {
      struct stat info = TRY(sys::StatAt(directory, entry.name));
      AddDevice(below, info, seen);
      if (!S_ISDIR(info.st_mode)) continue;
    } else if (entry.type != DT_DIR) {
      continue;
    }
    UniqueFd next =
        TRY(sys::OpenAt2(directory, entry.name, O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
    TRY(AddDevices(next.get(), below, depth + 1, seen));
  }
  return Ok();
}

}  // namespace

void AddDevice(const std::string& path, const struct stat& info, cell::InsideAttestation& seen) {
  if (!S_ISCHR(info.st_mode) && !S_ISBLK(info.st_mode)) return;
  seen.devices.push_back({path, info.st_mode, info.st_rdev});
}

Status AttestDevices(cell::InsideAttestation& seen) {
  UniqueFd dev =
      TRY(sys::OpenAt2(AT_FDCWD, "/dev", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS));
  return AddDevices(dev.get(), "/dev", 1, seen);
}

Result<std::vector<cell::ProcessSeen>> OtherProcesses(pid_t except) {
  std::vector<cell::ProcessSeen> others;
  const pid_t own = sys::OwnPid();
  UniqueFd proc = TRY(sys::Open("/proc", O_RDONLY | O_DIRECTORY));
  for (const sys::DirectoryEntry& entry : TRY(sys::ReadDirectory(proc.get(), kMaxProcEntries))) {
    std::optional<uint64_t> number = ParseUnsigned(entry.name);
    if (!number) continue;
    auto pid = static_cast<pid_t>(*number);
    if (pid == own || pid == except) continue;
    Result<std::string> name = sys::ReadFile(proc.get(), Text(entry.name, "/comm"), kMaxNameBytes);
    others.push_back({pid, name.ok() ? std::string(Trim(name.value())) : ""});
  }
  return others;
}

}  // namespace taskcell::init
