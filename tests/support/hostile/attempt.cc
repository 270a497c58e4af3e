#include "tests/support/hostile/attempt.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

namespace taskcell::test {
namespace {

constexpr int kConnectTimeoutMs = 2000;

// What a failed call's errno is called. Must be the first thing after the call.
Attempted ByErrno() {
  const char* name = ::strerrorname_np(errno);
  return {true, name == nullptr ? "an unknown errno" : name};
}

Attempted Succeeded(std::string how) { return {false, std::move(how)}; }

// Descriptors of this process but 0, 1, 2 and those it just made.
std::vector<int> OpenDescriptors() {
  std::vector<int> found;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = ::readdir(directory)) {
    int fd = entry->d_name[0] == '.' ? -1 : std::atoi(entry->d_name);
    if (fd > 2 && fd != ::dirfd(directory)) found.push_back(fd);
  }
  (void)::closedir(directory);
  return found;
}

}  // namespace

bool OnlyLoopback() {
  struct if_nameindex* names = ::if_nameindex();
  if (names == nullptr) return false;
  bool only = true;
  for (const struct if_nameindex* each = names; each->if_index != 0; ++each) {
    only = only && std::string("lo") == each->if_name;
  }
  ::if_freenameindex(names);
  return only;
}

Attempted ReadFile(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ByErrno();
  char byte = 0;
  ssize_t size = ::read(fd, &byte, 1);
  if (size < 0) return ByErrno();
  return size == 0 ? Attempted{true, "empty"} : Succeeded("it can be read");
}

Attempted WriteFile(const std::string& path) {
  if (::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0) {
    (void)::unlink(path.c_str());
    return Succeeded("it can be made");
  }
  if (errno != EEXIST) return ByErrno();
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  return fd < 0 ? ByErrno() : Succeeded("it can be written");
}

Attempted Connect(const char* address, int port) {
  if (!OnlyLoopback()) return {true, "not tried: there are interfaces besides lo"};
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ByErrno();
  struct sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address, &peer.sin_addr) != 1) return {true, "no address"};
  const void* pointer = &peer;
  if (::connect(fd, static_cast<const struct sockaddr*>(pointer), sizeof(peer)) == 0) {
    return Succeeded("connected");
  }
  if (errno != EINPROGRESS) return ByErrno();
  struct pollfd entry = {fd, POLLOUT, 0};
  if (::poll(&entry, 1, kConnectTimeoutMs) == 0) return {true, "no answer"};
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return ByErrno();
  if (error == 0) return Succeeded("connected");
  return {true, ::strerrorname_np(error)};
}

Attempted OpenSocket(int domain, int type, int protocol) {
  int fd = ::socket(domain, type | SOCK_CLOEXEC, protocol);
  return fd < 0 ? ByErrno() : Succeeded("opened");
}

Attempted Mount() {
  if (::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0) return Succeeded("mounted");
  return ByErrno();
}

Attempted NewUserNamespace() {
  return ::unshare(CLONE_NEWUSER) == 0 ? Succeeded("made") : ByErrno();
}

Attempted TraceInit() {
  if (::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr) == 0) return Succeeded("attached");
  return ByErrno();
}

Attempted ReadInitMemory() {
  char byte = 0;
  struct iovec here = {&byte, 1};
  struct iovec there = {reinterpret_cast<void*>(0x400000), 1};
  // EFAULT is said only to whoever may read.
  if (::process_vm_readv(1, &here, 1, &there, 1, 0) == 1 || errno == EFAULT) {
    return Succeeded("it can be read");
  }
  Attempted refused = ByErrno();
  if (::open("/proc/1/mem", O_RDONLY | O_CLOEXEC) >= 0) return Succeeded("/proc/1/mem opens");
  refused.how += ", /proc/1/mem " + ByErrno().how;
  return refused;
}

Attempted TakeInitDescriptor() {
  auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, 1, 0));
  if (pidfd < 0) return ByErrno();
  for (int fd = 0; fd < 64; ++fd) {
    if (::syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0) return Succeeded("taken");
  }
  return ByErrno();
}

Attempted ForeignDescriptors() {
  std::vector<int> found = OpenDescriptors();
  if (!found.empty()) return Succeeded("descriptor " + std::to_string(found[0]) + " is open");
  DIR* directory = ::opendir("/proc/1/fd");
  if (directory == nullptr) return ByErrno();
  return Succeeded("/proc/1/fd can be listed");
}

Attempted KillInit() {
  if (::kill(1, SIGKILL) != 0) return ByErrno();
  ::usleep(200'000);  // were it dead, so were this process
  return {true, "without effect"};
}

Attempted BecomeRoot() {
  if (::setresuid(0, 0, 0) == 0) return Succeeded("uid 0");
  return ByErrno();
}

Attempted LoadBpf() {
  constexpr char kLicense[] = "GPL";
  const struct bpf_insn program[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                                     {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  union bpf_attr attributes;
  ::memset(&attributes, 0, sizeof(attributes));
  attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  attributes.insn_cnt = 2;
  attributes.insns = reinterpret_cast<uintptr_t>(program);
  attributes.license = reinterpret_cast<uintptr_t>(kLicense);
  if (::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes)) >= 0) {
    return Succeeded("loaded");
  }
  return ByErrno();
}

Attempted SetUpIoUring() {
  char parameters[120] = {};
  if (::syscall(SYS_io_uring_setup, 1, parameters) >= 0) return Succeeded("set up");
  return ByErrno();
}

Attempted WriteCgroup() {
  for (const char* path :
       {"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/tasks",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max"}) {
    int fd = ::open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) return Succeeded(std::string(path) + " can be written");
  }
  return ByErrno();
}

Attempted ForkBomb(long limit) {
  std::vector<pid_t> children;
  Attempted result = Succeeded("made " + std::to_string(limit) + " processes");
  while (static_cast<long>(children.size()) < limit) {
    pid_t child = ::fork();
    if (child < 0) {
      result = ByErrno();
      result.how += " after " + std::to_string(children.size()) + " processes";
      break;
    }
    if (child == 0) {
      ::alarm(60);  // should the parent be killed
      for (;;) ::pause();
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
  }
  return result;
}

Attempted HogMemory(long limit_mib, int progress) {
  constexpr std::size_t kStepMib = 16;
  for (long taken = 0; taken < limit_mib; taken += static_cast<long>(kStepMib)) {
    void* memory = ::mmap(nullptr, kStepMib << 20U, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return ByErrno();
    ::memset(memory, 0xA5, kStepMib << 20U);
    (void)::dprintf(progress, "%ld\n", taken + static_cast<long>(kStepMib));
  }
  return Succeeded("took " + std::to_string(limit_mib) + " MiB");
}

}  // namespace taskcell::test
