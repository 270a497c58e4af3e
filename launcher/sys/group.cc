#include "launcher/sys/group.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"

extern char** environ;

namespace taskcell::sys {
namespace {

using Clock = std::chrono::steady_clock;

int LeftOf(Clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

Result<Child> Spawn(const std::vector<std::string>& argv, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int err = ::posix_spawn_file_actions_init(&actions);
  if (err == 0) err = ::posix_spawnattr_init(&attributes);
  if (err != 0) return FailureOf(err, "posix_spawn set-up");
  Defer destroy([&actions, &attributes] {
    (void)::posix_spawnattr_destroy(&attributes);  // ignoring: it cannot fail in glibc
    (void)::posix_spawn_file_actions_destroy(&actions);
  });
  err = ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (err == 0) err = ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (err == 0) err = ::posix_spawn_file_actions_adddup2(&actions, output, 2);
  if (err == 0) err = ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  if (err != 0) return FailureOf(err, "posix_spawn set-up");
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  pointers.reserve(argv.size() + 1);
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = 0;
  err = ::posix_spawn(&pid, argv[0].c_str(), &actions, &attributes, pointers.data(), environ);
  if (err != 0) return FailureOf(err, Text("run '", argv[0], "'"));
  long pidfd = ::syscall(SYS_pidfd_open, pid, 0);
  Child child(pid, UniqueFd(static_cast<int>(pidfd)));
  if (pidfd < 0) return Failure("pidfd_open");
  return child;
}

// Takes one read's worth; false at the end of the pipe.
Result<bool> TakeOutput(int fd, std::size_t limit, GroupResult& result) {
  std::array<char, 16384> buffer;
  std::size_t size = TRY(Read(fd, buffer));
  std::size_t keep = std::min(size, limit - result.output.size());
  result.output.append(buffer.data(), keep);
  result.truncated = result.truncated || keep < size;
  return size > 0;
}

}  // namespace

Result<GroupResult> RunGroup(const std::vector<std::string>& argv, int timeout_ms,
                             std::size_t output_limit) {
  Pipe pipe = TRY(MakePipe());
  TRY(SetNonBlocking(pipe.read_end.get()));
  Child child = TRY(Spawn(argv, pipe.write_end.get()));
  pipe.write_end.Reset();
  GroupResult result;
  Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::array<struct pollfd, 2> entries = {pollfd{child.pidfd(), POLLIN, 0},
                                          pollfd{pipe.read_end.get(), POLLIN, 0}};
  while (entries[0].revents == 0 && !result.timed_out) {
    result.timed_out = TRY(PollAll(entries, LeftOf(deadline))) == 0;
    if (entries[1].revents != 0 && !TRY(TakeOutput(pipe.read_end.get(), output_limit, result))) {
      entries[1].fd = -1;  // every writer is gone; poll skips it
    }
  }
  // Before the reaping, while the group's number cannot belong to anybody else.
  (void)::kill(-child.pid(), SIGKILL);  // ignoring: the group may be gone already
  result.exit = TRY(child.Wait());
  // What was written before the end. Bounded: a process that left the group may go on writing.
  for (std::size_t rounds = 0; entries[1].fd >= 0 && rounds < 64; ++rounds) {
    if (TRY(Poll(pipe.read_end.get(), POLLIN, 0)) == 0) break;
    if (!TRY(TakeOutput(pipe.read_end.get(), output_limit, result))) break;
  }
  return result;
}

}  // namespace taskcell::sys
