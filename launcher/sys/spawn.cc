#include "launcher/sys/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/other_process.h"

namespace taskcell::sys {
namespace {

constexpr int kFirstPassed = 3;
constexpr int kStagingNumber = 64;  // above every number passed, so that no dup2 overwrites another

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& text : strings) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): posix_spawn does not write them
    out.push_back(const_cast<char*>(text.c_str()));
  }
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<Child> SpawnProgram(const std::string& path, const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment,
                           std::span<const PassedDescriptor> passed) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&actions) != 0 || ::posix_spawnattr_init(&attributes) != 0)
    return Error(Kind::kSystem, "posix_spawn: no memory");
  Defer free_both([&] {
    (void)::posix_spawn_file_actions_destroy(&actions);  // ignoring: it always succeeds
    (void)::posix_spawnattr_destroy(&attributes);        // ignoring: it always succeeds
  });

  std::vector<UniqueFd> staged;
  int past_last = kFirstPassed;
  int failed = 0;
  for (int fd = 0; fd < kFirstPassed; ++fd)
    failed |= ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  for (const PassedDescriptor& one : passed) {
    if (one.number < kFirstPassed || one.number >= kStagingNumber)
      return Error(Kind::kInternal, Text("descriptor number ", one.number, " can't be passed"));
    Result<UniqueFd> copy = Duplicate(one.fd, kStagingNumber);
    if (!copy.ok() && (copy.error().err == EINVAL || copy.error().err == EMFILE)) {
      return Error(
          Kind::kUnsupported,
          Text("the limit on open descriptors here (RLIMIT_NOFILE, `ulimit -n`) is below the ",
               kStagingNumber + static_cast<int>(passed.size()),
               " that starting a program takes: let whoever started this raise it "
               "(LimitNOFILE= of a systemd unit)"),
          copy.error().err);
    }
    staged.push_back(TRY(std::move(copy)));
    failed |= ::posix_spawn_file_actions_adddup2(&actions, staged.back().get(), one.number);
    past_last = std::max(past_last, one.number + 1);
  }
  failed |= ::posix_spawn_file_actions_addclosefrom_np(&actions, past_last);

  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  failed |= ::posix_spawnattr_setsigmask(&attributes, &none);
  failed |= ::posix_spawnattr_setsigdefault(&attributes, &all);
  failed |= ::posix_spawnattr_setpgroup(&attributes, 0);
  failed |= ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  if (failed != 0) return Error(Kind::kSystem, "posix_spawn: the attributes could not be set");

  pid_t pid = 0;
  int err = ::posix_spawn(&pid, path.c_str(), &actions, &attributes, Pointers(argv).data(),
                          Pointers(environment).data());
  if (err != 0) return FailureOf(err, Text("posix_spawn '", Printable(path), "'"));
  // The child can't be reaped by anyone else, so the pid is still its own.
  auto pidfd = OpenPidfd(pid);
  if (!pidfd.ok()) {
    (void)::kill(pid, SIGKILL);        // ignoring: a child of ours can always be killed
    (void)::waitpid(pid, nullptr, 0);  // ignoring: and reaped
    return std::move(pidfd).error();
  }
  return Child(pid, std::move(pidfd).value());
}

}  // namespace taskcell::sys
