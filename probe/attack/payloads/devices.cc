// Device nodes, made or found, and the terminal.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "devices";

Attempted MakeNode(const Targets& targets, uint32_t type, uint64_t number) {
  std::string path = targets.scratch + "/node";
  int64_t made = Call(SYS_mknodat, AT_FDCWD, path.c_str(), type | 0600, number);
  if (made == 0) (void)Call(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  return Of(made);
}

Attempted MakeMemoryNode(const Targets& targets) {
  return MakeNode(targets, S_IFCHR, makedev(1, 1));
}

Attempted MakeDiskNode(const Targets& targets) { return MakeNode(targets, S_IFBLK, makedev(8, 0)); }

template <const char* kPath, int kFlags>
Attempted OpenDevice(const Targets& /*targets*/) {
  return TryOpening(kPath, kFlags);
}
constexpr char kMemory[] = "/dev/mem";
constexpr char kLog[] = "/dev/kmsg";
constexpr char kFuse[] = "/dev/fuse";
constexpr char kTunnel[] = "/dev/net/tun";
constexpr char kLoop[] = "/dev/loop-control";
constexpr char kMapper[] = "/dev/mapper/control";

// The disks of the machine by the names the kernel gives them.
Attempted OpenDisk(const Targets& /*targets*/) {
  constexpr std::size_t kMaxBytes = 64U << 10U;
  constexpr std::size_t kName = 3;
  Attempted last = {ENOENT, "no disk is named"};
  Result<std::string> table = sys::ReadFile(AT_FDCWD, "/proc/partitions", kMaxBytes);
  if (!table.ok()) return {table.error().err, "/proc/partitions"};
  for (std::string_view line : Split(table.value(), '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() <= kName || words[0] == "major") continue;
    last = TryOpening(Text("/dev/", words[kName]), O_RDONLY);
    if (last.result == 0) return last;
  }
  return last;
}

// A new terminal, made the controlling one of a new session.
Attempted TypeIntoTerminal(const Targets& /*targets*/) {
  int64_t opened = OpenFile("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (opened < 0) return Of(opened, "/dev/ptmx");
  UniqueFd master(static_cast<int>(opened));
  int unlock = 0;
  (void)Call(SYS_ioctl, master.get(), TIOCSPTLCK, &unlock);
  int64_t peer = Call(SYS_ioctl, master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (peer < 0) return Of(peer, "TIOCGPTPEER");
  UniqueFd terminal(static_cast<int>(peer));
  // The terminal goes with this function, and takes its session along that does not mind.
  (void)sys::IgnoreSignal(SIGHUP);
  (void)Call(SYS_setsid);
  (void)Call(SYS_ioctl, terminal.get(), TIOCSCTTY, 0);
  char letter = 'x';
  return Of(Call(SYS_ioctl, terminal.get(), TIOCSTI, &letter), "TIOCSTI");
}

// The filter compares 32 bits, as the kernel does: what stands above must not matter.
Attempted TypeIntoTerminalUpperHalf(const Targets& /*targets*/) {
  int64_t opened = OpenFile("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (opened < 0) return Of(opened, "/dev/ptmx");
  UniqueFd master(static_cast<int>(opened));
  constexpr uint64_t kUpper = uint64_t{1} << 32U;
  char letter = 'x';
  return Of(Call(SYS_ioctl, master.get(), kUpper | TIOCSTI, &letter), "TIOCSTI");
}

// What gpm(8) does: paste into a virtual console. The one asked for here only reads the state of
// its shift keys.
Attempted PasteIntoConsole(const Targets& /*targets*/) {
  int64_t opened = OpenFile("/dev/tty1", O_RDWR | O_NOCTTY);
  if (opened < 0) opened = OpenFile("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (opened < 0) return Of(opened, "/dev/ptmx");
  UniqueFd console(static_cast<int>(opened));
  char shift_state = 6;
  return Of(Call(SYS_ioctl, console.get(), TIOCLINUX, &shift_state), "TIOCLINUX");
}

constexpr Payload kPayloads[] = {
    // EACCES: Landlock, which has its say first.
    {"make-memory-device",
     kTopic,
     "make a device for the machine's memory",
     Control::kRoot,
     {EPERM, EACCES},
     MakeMemoryNode},
    {"make-disk-device",
     kTopic,
     "make a device for a disk",
     Control::kRoot,
     {EPERM, EACCES},
     MakeDiskNode},
    {"device-memory",
     kTopic,
     "open /dev/mem",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDevice<kMemory, O_RDONLY>},
    {"device-log",
     kTopic,
     "open /dev/kmsg",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDevice<kLog, O_RDWR>},
    {"device-fuse",
     kTopic,
     "open /dev/fuse",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDevice<kFuse, O_RDWR>},
    {"device-tunnel",
     kTopic,
     "open /dev/net/tun",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDevice<kTunnel, O_RDWR>},
    {"device-loop",
     kTopic,
     "open /dev/loop-control",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDevice<kLoop, O_RDWR>},
    {"device-mapper",
     kTopic,
     "open /dev/mapper/control",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDevice<kMapper, O_RDWR>},
    {"device-disk",
     kTopic,
     "open a disk of the machine",
     Control::kRoot,
     {ENOENT, EACCES},
     OpenDisk},
    {"terminal-input",
     kTopic,
     "type into its terminal (TIOCSTI)",
     Control::kRoot,
     {EPERM},
     TypeIntoTerminal},
    {"terminal-input-upper-half",
     kTopic,
     "type into a terminal with more bits in the register than the kernel reads",
     Control::kRoot,
     {EPERM},
     TypeIntoTerminalUpperHalf},
    {"console-paste",
     kTopic,
     "paste into a virtual console (TIOCLINUX)",
     Control::kRoot,
     {EPERM},
     PasteIntoConsole},
};

}  // namespace

std::span<const Payload> DevicePayloads() { return kPayloads; }

}  // namespace taskcell::attack
