#include "launcher/sys/self.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

uint64_t Microseconds(const struct timeval& time) {
  constexpr uint64_t kPerSecond = 1'000'000;
  return static_cast<uint64_t>(time.tv_sec) * kPerSecond + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

Result<bool> IsDumpable() {
  int answer = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  if (answer < 0) return Failure("prctl PR_GET_DUMPABLE");
  return answer != 0;
}

Status SetDumpable() {
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) return Failure("prctl PR_SET_DUMPABLE 1");
  return Ok();
}

Status SetResourceLimit(int resource, uint64_t value) {
  struct rlimit limit = {value, value};
  // The cast is glibc's: C++ sees an enumeration where the kernel has an int.
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) < 0) {
    return Failure(Text("setrlimit ", resource, " ", value));
  }
  return Ok();
}

Status RaiseResourceLimit(int resource) {
  return SetResourceLimit(resource, TRY(ResourceLimit(resource)));
}

Result<uint64_t> ResourceLimit(int resource) {
  struct rlimit limit = {};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) < 0) {
    return Failure(Text("getrlimit ", resource));
  }
  return limit.rlim_max;
}

Result<struct stat> StatNamespace(std::string_view name) {
  std::string path = Text("/proc/self/ns/", name);
  struct stat info = {};
  if (::stat(path.c_str(), &info) < 0) return Failure(Text("stat '", Printable(path), "'"));
  return info;
}

Result<std::string> HostName() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  if (::gethostname(name.data(), name.size()) < 0) return Failure("gethostname");
  return std::string(name.data());
}

Result<std::string> MachineName() {
  struct utsname host = {};
  if (::uname(&host) < 0) return Failure("uname");
  return std::string(host.machine);
}

Result<FileSystem> FileSystemOf(int fd) {
  struct statfs info = {};
  if (::fstatfs(fd, &info) < 0) return Failure(Text("fstatfs (fd ", fd, ")"));
  return FileSystem{static_cast<uint64_t>(info.f_type),
                    info.f_blocks * static_cast<uint64_t>(info.f_bsize),
                    info.f_bavail * static_cast<uint64_t>(info.f_bsize)};
}

Result<uint32_t> AccessMode(int fd) {
  return static_cast<uint32_t>(TRY(StatusFlags(fd)) & (O_ACCMODE | O_PATH));
}

Result<int> StatusFlags(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return Failure(Text("fcntl F_GETFL (fd ", fd, ")"));
  return flags;
}

Status SetStatusFlags(int fd, int flags) {
  if (::fcntl(fd, F_SETFL, flags) < 0) return Failure(Text("fcntl F_SETFL (fd ", fd, ")"));
  return Ok();
}

int32_t OwnPid() { return ::getpid(); }

int32_t ParentPid() { return ::getppid(); }

Status CloseOnExec(int fd) {
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return Failure(Text("fcntl F_SETFD (fd ", fd, ")"));
  return Ok();
}

Result<uint32_t> InterfaceFlags(int socket, const std::string& name) {
  struct ifreq request = {};
  if (name.size() >= sizeof request.ifr_name) {
    return Error(Kind::kUsage, Text("interface name '", Printable(name), "' is too long"), EINVAL);
  }
  name.copy(static_cast<char*>(request.ifr_name), name.size());
  if (::ioctl(socket, SIOCGIFFLAGS, &request) < 0) {
    return Failure(Text("ioctl SIOCGIFFLAGS '", Printable(name), "'"));
  }
  return static_cast<uint32_t>(static_cast<uint16_t>(request.ifr_flags));
}

Result<Usage> ChildrenUsage() {
  struct rusage usage = {};
  if (::getrusage(RUSAGE_CHILDREN, &usage) < 0) return Failure("getrusage RUSAGE_CHILDREN");
  return Usage{Microseconds(usage.ru_utime), Microseconds(usage.ru_stime)};
}

Result<Usage> OwnUsage() {
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) < 0) return Failure("getrusage RUSAGE_SELF");
  Usage children = TRY(ChildrenUsage());
  return Usage{Microseconds(usage.ru_utime) + children.user_us,
               Microseconds(usage.ru_stime) + children.system_us};
}

Status ChangeDirectory(const std::string& path) {
  if (::chdir(path.c_str()) < 0) return Failure(Text("chdir '", Printable(path), "'"));
  return Ok();
}

}  // namespace taskcell::sys
