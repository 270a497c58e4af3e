#include "launcher/sys/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

constexpr std::size_t kMaxProgramErrors = 4096;
constexpr std::size_t kMaxProgramOutput = 64U << 10U;

ExitInfo InfoOf(const siginfo_t& ended) {
  if (ended.si_code == CLD_EXITED) return {ended.si_status, 0};
  return {0, ended.si_status};
}

// The null-terminated array exec wants. The strings stay the caller's.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) {
    pointers.push_back(const_cast<char*>(text.c_str()));  // exec only reads
  }
  pointers.push_back(nullptr);
  return pointers;
}

// What a pipe that does not block holds now.
std::string ReadPiece(int fd, std::size_t limit) {
  std::string text(limit, '\0');
  Result<std::size_t> got = Read(fd, text);
  text.resize(got.ok() ? got.value() : 0);
  return text;
}

Result<Cloned> CloneWithoutClone3(uint64_t flags) {
  int pidfd = -1;
  // The raw call in fork's manner: no stack, so the child goes on here. clone(2) is not asked for
  // a cgroup or for flags above 32 bits.
  long pid = ::syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
  if (pid < 0) return Failure("clone");
  if (pid == 0) return Cloned{true, Child()};
  return Cloned{false, Child(static_cast<pid_t>(pid), UniqueFd(pidfd))};
}

}  // namespace

Child& Child::operator=(Child&& other) noexcept {
  KillAndReap();
  pid_ = std::exchange(other.pid_, 0);
  pidfd_ = std::move(other.pidfd_);
  return *this;
}

void Child::KillAndReap() {
  if (!valid()) return;
  (void)Signal(SIGKILL);  // ignoring: ESRCH, it ended by itself
  (void)Wait();           // ignoring: nobody is left to be told
}

Status Child::Signal(int signal) const {
  if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) == 0) return Ok();
  int err = errno;
  bool forbidden = valid() && (err == ENOSYS || err == EPERM);
  if (forbidden && ::kill(pid_, signal) == 0) return Ok();
  return FailureOf(err, Text("pidfd_send_signal ", signal, " (pid ", pid_, ")"));
}

Result<ExitInfo> Child::Wait() {
  siginfo_t ended = {};
  idtype_t by = P_PIDFD;
  auto id = static_cast<id_t>(pidfd_.get());
  while (::waitid(by, id, &ended, WEXITED) < 0) {
    int err = errno;
    if (err == EINTR) continue;
    bool not_by_pidfd = by == P_PIDFD && (err == EINVAL || err == EPERM);  // Linux 5.4, a filter
    if (not_by_pidfd && valid()) {
      by = P_PID;
      id = static_cast<id_t>(pid_);
      continue;
    }
    pid_ = 0;
    return FailureOf(err, "waitid");
  }
  pid_ = 0;
  return InfoOf(ended);
}

namespace {

// ENOSYS: before Linux 5.9; EINVAL: before 5.11, which brought CLOEXEC; EPERM: by a filter.
bool IsForWantOfCloseRange(int err) { return err == ENOSYS || err == EINVAL || err == EPERM; }

// One more than the highest descriptor that can be open. Readable whomever the process's files
// below /proc belong to, unlike the list of its descriptors.
Result<unsigned> DescriptorTableSize() {
  constexpr std::size_t kMaxStatusBytes = 65536;
  constexpr std::string_view kField = "\nFDSize:";
  const std::string status = TRY(ReadProc("self/status", kMaxStatusBytes));
  const std::size_t at = status.find(kField);
  std::optional<uint64_t> size;
  if (at != std::string::npos) {
    std::string_view rest = std::string_view(status).substr(at + kField.size());
    size = ParseUnsigned(Trim(rest.substr(0, rest.find('\n'))));
  }
  if (!size) return Error(Kind::kSystem, "/proc/self/status names no FDSize");
  return static_cast<unsigned>(*size);
}

}  // namespace

Result<Cloned> CloneProcess(uint64_t flags, int cgroup_fd) {
  int pidfd = -1;
  struct clone_args arguments = {};
  arguments.flags = flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  // A kernel from before CLONE_INTO_CGROUP takes the first size alone.
  std::size_t size = CLONE_ARGS_SIZE_VER0;
  if (cgroup_fd >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<uint32_t>(cgroup_fd);
    size = CLONE_ARGS_SIZE_VER2;
  }
  long pid = ::syscall(SYS_clone3, &arguments, size);
  if (pid == 0) return Cloned{true, Child()};
  if (pid > 0) return Cloned{false, Child(static_cast<pid_t>(pid), UniqueFd(pidfd))};
  int err = errno;
  // EPERM: a filter from before clone3. Where it means what it says, clone says it again.
  bool no_clone3 = err == ENOSYS || err == EPERM;
  if (no_clone3 && cgroup_fd < 0) return CloneWithoutClone3(flags);
  return FailureOf(err, cgroup_fd < 0 ? "clone3" : "clone3 into the cell's cgroup");
}

Status AssertSingleThread() {
  struct stat info = {};
  // A directory's link count is 2 and one for each subdirectory, here one a thread.
  if (::stat("/proc/self/task", &info) < 0) return Failure("stat '/proc/self/task'");
  if (info.st_nlink != 3) {
    return Error(Kind::kInternal, Text("this process has ", static_cast<long>(info.st_nlink) - 2,
                                       " threads, it must have one to clone"));
  }
  return Ok();
}

Status Unshare(int flags) {
  if (::unshare(flags) >= 0) return Ok();
  const int err = errno;
  Error error = FailureOf(err, Text("unshare ", flags));
  if (err == ENOSPC || err == EUSERS) error.kind = Kind::kDenied;  // a limit, not a full disk
  return error;
}

Status CloseRange(unsigned first, unsigned last) {
  if (::syscall(SYS_close_range, first, last, 0) >= 0) return Ok();
  int err = errno;
  if (!IsForWantOfCloseRange(err)) return FailureOf(err, Text("close_range ", first, " ", last));
  const unsigned end = TRY(DescriptorTableSize());
  for (unsigned fd = first; fd < end && fd <= last; ++fd) ::close(static_cast<int>(fd));
  return Ok();
}

Status CloseOnExecFrom(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) >= 0) return Ok();
  int err = errno;
  if (!IsForWantOfCloseRange(err)) return FailureOf(err, Text("close_range ", first, " CLOEXEC"));
  const unsigned end = TRY(DescriptorTableSize());
  for (unsigned fd = first; fd < end; ++fd) {
    if (::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC) < 0 && errno != EBADF)
      return Failure(Text("fcntl F_SETFD (fd ", fd, ")"));
  }
  return Ok();
}

Status FillStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is taken, and all below `fd` are open by now.
    if (::open("/dev/null", O_RDWR) != fd)  // NOLINT(android-cloexec-open): a standard stream
      return Failure(Text("open '/dev/null' as ", fd));
  }
  return Ok();
}

Status PlaceDescriptor(int fd, int number) {
  if (fd == number) return KeepOnExec(fd);
  if (::dup3(fd, number, 0) < 0) return Failure(Text("dup3 (fd ", fd, ") to ", number));
  return Ok();
}

Error ExecuteDescriptor(int fd, const std::vector<std::string>& argv,
                        const std::vector<std::string>& environment) {
  std::vector<char*> arguments = Pointers(argv);
  std::vector<char*> variables = Pointers(environment);
  ::syscall(SYS_execveat, fd, "", arguments.data(), variables.data(), AT_EMPTY_PATH);
  return Failure(Text("execveat '", argv.empty() ? "" : argv[0], "' (fd ", fd, ")"));
}

Error Execute(const std::string& path, const std::vector<std::string>& argv,
              const std::vector<std::string>& environment) {
  std::vector<char*> argument_pointers = Pointers(argv);
  std::vector<char*> environment_pointers = Pointers(environment);
  ::execve(path.c_str(), argument_pointers.data(), environment_pointers.data());
  return Failure(Text("execve '", Printable(path), "'"));
}

Result<ProgramResult> RunProgram(const std::vector<std::string>& argv, int timeout_ms, int input) {
  UniqueFd null = TRY(Open("/dev/null", O_RDWR));
  Pipe output = TRY(MakePipe(O_NONBLOCK));
  Pipe errors = TRY(MakePipe(O_NONBLOCK));
  UniqueFd program = TRY(Open(argv[0], O_PATH));
  Cloned cloned = TRY(CloneProcess(0));
  if (cloned.in_child) {
    bool placed = PlaceDescriptor(input < 0 ? null.get() : input, 0).ok() &&
                  PlaceDescriptor(output.write_end.get(), 1).ok() &&
                  PlaceDescriptor(errors.write_end.get(), 2).ok();
    if (placed) {
      Error why = ExecuteDescriptor(program.get(), argv, {});
      (void)WriteAll(2, why.text);  // ignoring: the exit status says it too
    }
    ExitNow(127);
  }
  output.write_end.Reset();
  errors.write_end.Reset();
  short ended = TRY(Poll(cloned.child.pidfd(), POLLIN, timeout_ms));
  if (ended == 0)
    return Error(Kind::kSystem, Text(argv[0], " did not end in ", timeout_ms, " ms"), ETIMEDOUT);
  ProgramResult result;
  result.exit = TRY(cloned.child.Wait());
  result.output = ReadPiece(output.read_end.get(), kMaxProgramOutput);
  result.errors = ReadPiece(errors.read_end.get(), kMaxProgramErrors);
  return result;
}

void ExitNow(int status) { ::_exit(status); }

}  // namespace taskcell::sys
