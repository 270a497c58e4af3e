#include "launcher/init/attest.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/stream.h"
#include "launcher/sys/terminal.h"

namespace taskcell::init {
namespace {

constexpr std::size_t kMaxDescriptors = 4096;
constexpr std::size_t kMaxNames = 4096;
constexpr int kDecimal = 10;
constexpr int kHexadecimal = 16;

Result<std::string> ReadProc(const std::string& path) {
  return sys::ReadFile(AT_FDCWD, path, kMaxProcFileBytes);
}

std::optional<uint64_t> ParseNumber(std::string_view text, int base) {
  if (base == kDecimal) return ParseUnsigned(text);
  constexpr std::size_t kMaxDigits = 16;
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  uint64_t number = 0;
  for (char letter : text) {
    bool digit = letter >= '0' && letter <= '9';
    if (!digit && (letter < 'a' || letter > 'f')) return std::nullopt;
    number = number * kHexadecimal +
             static_cast<uint64_t>(digit ? letter - '0' : letter - 'a' + kDecimal);
  }
  return number;
}

// The `index`th number of the line "`name`:\t..." of /proc/self/status.
Result<uint64_t> StatusNumber(std::string_view status, std::string_view name, std::size_t index,
                              int base) {
  for (std::string_view line : Split(status, '\n')) {
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    std::vector<std::string_view> words = Words(line.substr(name.size() + 1));
    std::optional<uint64_t> number;
    if (index < words.size()) number = ParseNumber(words[index], base);
    if (number) return *number;
  }
  return Error(Kind::kViolation, Text("/proc/self/status has no line '", name, "' as expected"));
}

Status ReadIds(std::string_view status, std::string_view name, std::array<uint32_t, 4>& ids) {
  for (std::size_t index = 0; index < ids.size(); ++index) {
    ids[index] = static_cast<uint32_t>(TRY(StatusNumber(status, name, index, kDecimal)));
  }
  return Ok();
}

Status ReadInterface(int socket, std::string_view line, cell::InsideAttestation& seen) {
  std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos) return Ok();  // the two lines of headings
  std::string name(Trim(line.substr(0, colon)));
  uint32_t flags = TRY(sys::InterfaceFlags(socket, name));
  seen.interfaces.push_back({std::move(name), flags});
  return Ok();
}

Status AddDescriptor(int directory, int fd, cell::InsideAttestation& seen) {
  cell::DescriptorSeen descriptor;
  descriptor.fd = fd;
  descriptor.target = TRY(sys::ReadLink(directory, Text(fd)));
  struct stat status = TRY(sys::Stat(descriptor.fd));
  descriptor.mode = status.st_mode;
  descriptor.device = status.st_rdev;
  descriptor.access = TRY(sys::AccessMode(descriptor.fd));
  Result<sys::FileSystem> file_system = sys::FileSystemOf(descriptor.fd);
  if (file_system.ok()) descriptor.filesystem = file_system->type;
  descriptor.terminal = S_ISCHR(status.st_mode) && sys::TerminalModes(descriptor.fd).has_value();
  descriptor.receives = S_ISSOCK(status.st_mode) && sys::MayReceive(descriptor.fd);
  seen.descriptors.push_back(std::move(descriptor));
  return Ok();
}

Result<UniqueFd> OpenProc() {
  UniqueFd proc =
      TRY(sys::OpenAt2(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS));
  constexpr uint64_t kProcRootInode = 1;
  bool is_proc = TRY(sys::FileSystemOf(proc.get())).type == PROC_SUPER_MAGIC &&
                 TRY(sys::Stat(proc.get())).st_ino == kProcRootInode;
  if (is_proc) return proc;
  return Error(Kind::kViolation, "/proc is not the kernel's process file system");
}

Result<std::string> ReadMounts() {
  const sys::Proc proc(TRY(OpenProc()));
  return proc.Read("self/mountinfo", kMaxProcFileBytes);
}

Status AttestNames(std::span<const char* const> environment, cell::InsideAttestation& seen) {
  if (environment.size() > kMaxNames) {
    return Error(Kind::kViolation, Text("more than ", kMaxNames, " environment entries"));
  }
  for (const char* entry : environment) {
    std::string_view text = entry;
    seen.environment_names.emplace_back(text.substr(0, text.find('=')));
  }
  seen.hostname = TRY(sys::HostName());
  seen.working_directory = TRY(sys::ReadLink(AT_FDCWD, "/proc/self/cwd"));
  return Ok();
}

void AttestKeyring(cell::InsideAttestation& seen) {
  Result<sys::SessionKeyring> keyring = sys::FindSessionKeyring();
  if (keyring.ok()) {
    seen.keyring = {keyring->serial, 0, std::move(keyring->description)};
  } else {
    seen.keyring.err = keyring.error().err;
  }
}

Status AttestProcess(cell::InsideAttestation& seen) {
  std::string status = TRY(ReadProc("/proc/self/status"));
  seen.pid = sys::OwnPid();
  TRY(ReadIds(status, "Uid", seen.uids));
  TRY(ReadIds(status, "Gid", seen.gids));
  for (gid_t group : TRY(sys::GetGroups())) seen.groups.push_back(group);
  constexpr std::string_view kSets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
  for (std::size_t set = 0; set < seen.capabilities.size(); ++set) {
    seen.capabilities[set] = TRY(StatusNumber(status, kSets[set], 0, kHexadecimal));
  }
  seen.no_new_privileges = TRY(StatusNumber(status, "NoNewPrivs", 0, kDecimal)) == 1;
  seen.dumpable = TRY(sys::IsDumpable());
  return Ok();
}

Status AttestNetwork(cell::InsideAttestation& seen) {
  std::string devices = TRY(ReadProc("/proc/self/net/dev"));
  UniqueFd socket = TRY(sys::MakeSocket(AF_UNIX, SOCK_DGRAM));
  for (std::string_view line : Split(devices, '\n')) {
    TRY(ReadInterface(socket.get(), line, seen));
  }
  seen.routes = TRY(ReadProc("/proc/self/net/route"));
  // ignoring a missing file: a kernel without IPv6
  Result<std::string> routes6 = ReadProc("/proc/self/net/ipv6_route");
  if (routes6.ok()) seen.routes += routes6.value();
  return Ok();
}

Status AttestDescriptors(const std::vector<int>& descriptors, cell::InsideAttestation& seen) {
  UniqueFd directory = TRY(sys::Open("/proc/self/fd", O_PATH | O_DIRECTORY));
  for (int fd : descriptors) TRY(AddDescriptor(directory.get(), fd, seen));
  return Ok();
}

Result<std::vector<int>> OpenDescriptors() {
  std::vector<int> descriptors;
  UniqueFd directory = TRY(sys::Open("/proc/self/fd", O_RDONLY | O_DIRECTORY));
  for (const sys::DirectoryEntry& entry :
       TRY(sys::ReadDirectory(directory.get(), kMaxDescriptors))) {
    std::optional<uint64_t> number = ParseUnsigned(entry.name);
    if (!number)
      return Error(Kind::kViolation, Text("'", Printable(entry.name), "' in /proc/self/fd"));
    auto fd = static_cast<int>(*number);
    if (fd != directory.get()) descriptors.push_back(fd);
  }
  return descriptors;
}

}  // namespace

Result<AloneSeen> AttestAlone() {
  AloneSeen alone;
  // First: it tells of whatever is mounted over the files that the rest is read from.
  alone.mountinfo = TRY(ReadMounts().With("attest mounts"));
  alone.descriptors = TRY(OpenDescriptors().With("attest descriptors"));
  return alone;
}

Status AttestRest(const Options& options, std::span<const char* const> environment, AloneSeen alone,
                  pid_t witness, cell::InsideAttestation& seen) {
  seen.processes = TRY(OtherProcesses(witness).With("attest processes"));
  TRY(AttestDescriptors(alone.descriptors, seen).With("attest descriptors"));
  seen.mountinfo = std::move(alone.mountinfo);
  AttestNamespaces(seen);
  AttestKeyring(seen);
  TRY(AttestNames(environment, seen).With("attest names"));
  TRY(AttestProcess(seen).With("attest ids"));
  TRY(AttestMounts(seen).With("attest mounts"));
  TRY(AttestNetwork(seen).With("attest network"));
  seen.limits = TRY(ReadLimits(options.limits, "/sys/fs/cgroup").With("attest limits"));
  return Ok();
}

}  // namespace taskcell::init
