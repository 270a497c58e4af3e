#include "launcher/init/confine.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/init/settings.h"
#include "launcher/sys/file.h"
#include "launcher/sys/landlock.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/seccomp_install.h"
#include "launcher/sys/self.h"
#include "seccomp/default_filter.h"

namespace taskcell::init {
namespace {

constexpr std::string_view kHighestOomScore = "1000";
constexpr uint64_t kMakeDevices = (1U << 6U) | (1U << 11U);  // LANDLOCK_ACCESS_FS_MAKE_{CHAR,BLOCK}
constexpr uint64_t kReadAndExecute = sys::kFsExecute | sys::kFsReadFile | sys::kFsReadDirectory;
constexpr uint64_t kUseFile = sys::kFsReadFile | sys::kFsWriteFile | sys::kFsTruncate;

bool MayBeWritable(std::string_view mount_point) {
  if (mount_point == "/dev/shm") return true;
  if (mount_point == "/") return false;
  return !cell::IsAtOrBelow(mount_point, "/proc") && !cell::IsAtOrBelow(mount_point, "/sys") &&
         !cell::IsAtOrBelow(mount_point, "/dev");
}

// A path that does not exist in this cell is granted nothing and is no failure. Of rights that only
// a directory can have a file (an engine's /etc/hosts below a writable root) gets none: the kernel
// refuses the rule otherwise.
Status Grant(int ruleset, const std::string& path, uint64_t rights) {
  Result<UniqueFd> file = sys::Open(path, O_PATH);
  if (!file.ok()) return file.error().err == ENOENT ? Ok() : Status(std::move(file).error());
  struct stat status = TRY(sys::Stat(file->get()));
  if (!S_ISDIR(status.st_mode)) rights &= kUseFile | sys::kFsExecute | sys::kFsIoctlDevice;
  return sys::GrantBeneath(ruleset, file->get(), rights);
}

Status GrantDevices(int ruleset, uint64_t known) {
  uint64_t use = (kUseFile | sys::kFsIoctlDevice) & known;
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                             "/dev/tty", "/dev/ptmx"}) {
    TRY(Grant(ruleset, device, use));
  }
  return Grant(ruleset, "/dev/pts", (use & ~sys::kFsTruncate) | sys::kFsReadDirectory);
}

// "program > file" hands the job a file of the host; that file and no other may be opened again
// (/dev/stdout), with the access it was given with.
Status GrantStandardStreams(int ruleset, uint64_t known) {
  for (int fd = 0; fd <= 2; ++fd) {
    Result<struct stat> info = sys::Stat(fd);
    if (!info.ok() || !S_ISREG(info->st_mode)) continue;
    uint32_t access = TRY(sys::AccessMode(fd));
    uint64_t rights = 0;
    if (access != O_WRONLY) rights |= sys::kFsReadFile;
    if (access != O_RDONLY) rights |= sys::kFsWriteFile | sys::kFsTruncate;
    Status granted = sys::GrantBeneath(ruleset, fd, rights & known);
    // EBADFD: a file without a path (memfd), which Landlock does not look at.
    if (!granted.ok() && granted.error().err != EBADFD) return granted;
  }
  return Ok();
}

Status ApplyLandlock(const Confinement& confinement) {
  int abi = confinement.landlock_abi;
  if (abi == 0) return Ok();
  uint64_t known = sys::LandlockFileRights(abi);
  sys::LandlockScope handled = {known, 0, sys::kScopeAbstractUnix | sys::kScopeSignal};
  UniqueFd ruleset = TRY(sys::MakeLandlockRuleset(abi, handled));
  TRY(Grant(ruleset.get(), "/", kReadAndExecute));
  for (const std::string& directory : TRY(WritableMounts(confinement.mountinfo))) {
    TRY(Grant(ruleset.get(), directory, known & ~kMakeDevices & ~sys::kFsIoctlDevice));
  }
  TRY(GrantDevices(ruleset.get(), known));
  TRY(GrantStandardStreams(ruleset.get(), known));
  return sys::RestrictSelf(ruleset.get());
}

// The files below /proc/self belong to root while the process is not dumpable, so it is for a
// moment: there is nobody else in the cell yet.
Status DieBeforeInit() {
  if (!sys::SetDumpable().ok()) return Ok();
  // ignoring: which process dies first when memory runs out is comfort, no boundary; a cell whose
  // /proc is wholly read-only has it less comfortable
  Result<sys::Proc> proc = sys::Proc::Open();
  if (proc.ok()) (void)proc->Write("self/oom_score_adj", kHighestOomScore);
  return sys::SetNotDumpable();
}

Status ApplyLimits(const Confinement& confinement) {
  // Where whoever started this allows none at all, no process here may raise that; the launcher has
  // seen that no handler is asked then.
  uint64_t core = std::min(cell::kCoreBytes, TRY(sys::ResourceLimit(RLIMIT_CORE)));
  TRY(sys::SetResourceLimit(RLIMIT_CORE, core));
  if (confinement.nofile != 0) TRY(sys::SetResourceLimit(RLIMIT_NOFILE, confinement.nofile));
  if (confinement.file_bytes == 0) return Ok();
  return sys::SetResourceLimit(RLIMIT_FSIZE, confinement.file_bytes);
}

}  // namespace

Result<std::vector<std::string>> WritableMounts(std::string_view mountinfo) {
  std::vector<std::string> writable;
  for (MountInfoLine& line : TRY(ParseMountInfo(mountinfo))) {
    if (HasMountOption(line.options, "rw") && MayBeWritable(line.mount_point)) {
      writable.push_back(std::move(line.mount_point));
    }
  }
  return writable;
}

Status ConfineSelf(const Confinement& confinement, std::string_view& stage,
                   cell::SettingsSeen& seen) {
  stage = "rlimit";
  TRY(ApplyLimits(confinement));
  TRY(DieBeforeInit());
  stage = "settings";
  TRY(ApplySettings());
  stage = "no_new_privs";
  TRY(sys::SetNoNewPrivileges());
  stage = "landlock";
  TRY(ApplyLandlock(confinement));
  stage = "settings";
  seen = TRY(ReadSettings());
  stage = "seccomp";
  seccomp::Program filter = seccomp::DefaultFilter();
  if (!confinement.filter.empty()) {
    filter = {confinement.filter.data(), static_cast<unsigned short>(confinement.filter.size())};
  }
  return sys::InstallSeccomp(filter.code, filter.length);
}

Status ConfineToPorts(int landlock_abi, uint16_t port, uint16_t tunnel_port) {
  constexpr int kAbiWithNet = 4;
  if (port == 0 || landlock_abi < kAbiWithNet) return Ok();
  UniqueFd ruleset = TRY(sys::MakeLandlockRuleset(landlock_abi, {0, sys::kNetConnectTcp, 0}));
  TRY(sys::GrantPort(ruleset.get(), port, sys::kNetConnectTcp));
  if (tunnel_port != 0) TRY(sys::GrantPort(ruleset.get(), tunnel_port, sys::kNetConnectTcp));
  return sys::RestrictSelf(ruleset.get());
}

Status LeaveTerminalsAlone() {
  constexpr auto kSetting = std::to_array<uint32_t>(
      {TIOCSPGRP, TCSETS, TCSETSW, TCSETSF, TCSETA, TCSETAW, TCSETAF, TCSETS2, TCSETSW2, TCSETSF2});
  constexpr auto kCount = static_cast<uint8_t>(kSetting.size());
  // Calls of other architectures have been the first filter's to kill.
  std::vector<sock_filter> code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 0, kCount + 1),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
  };
  uint8_t left = kCount;
  for (uint32_t request : kSetting)
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, request, left--, 0));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  return sys::InstallSeccomp(code.data(), static_cast<unsigned short>(code.size()));
}

}  // namespace taskcell::init
