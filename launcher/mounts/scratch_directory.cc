#include "launcher/mounts/scratch_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::mounts {
namespace {

constexpr const char* kSharedBase = "/tmp";
constexpr std::size_t kMaxBaseEntries = 100'000;
constexpr int kLockRounds = 2000;  // of a millisecond
constexpr int kDirectory = O_RDONLY | O_DIRECTORY;

std::string BasePath() {
  const char* runtime = ::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): one thread
  if (runtime != nullptr && runtime[0] == '/') {
    Result<UniqueFd> fd = sys::Open(runtime, O_PATH | O_DIRECTORY);
    if (fd.ok()) {
      Result<struct stat> info = sys::Stat(fd->get());
      if (info.ok() && info->st_uid == ::geteuid()) return runtime;
    }
  }
  return kSharedBase;
}

// Removes what processes of this user left that were killed. A lock that is taken means it lives.
void RemoveLeftovers(int base, std::string_view prefix) {
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ListDirectory(base, kMaxBaseEntries);
  if (!entries.ok()) return;  // ignoring: leftovers stay for another time
  for (const sys::DirectoryEntry& entry : entries.value()) {
    if (!entry.name.starts_with(prefix)) continue;
    Result<UniqueFd> fd = OpenComponent(base, entry.name, kDirectory);
    if (!fd.ok()) continue;
    Result<struct stat> info = sys::Stat(fd->get());
    if (!info.ok() || info->st_uid != ::geteuid()) continue;
    if (!sys::LockNamed(fd->get(), LOCK_EX, base, entry.name)) continue;
    (void)RemoveTree(base, entry.name);  // ignoring: leftovers stay for another time
  }
}

// Another process of this user that tidies up can take a new one for a leftover, until it is
// locked: then it is made again. In between anybody could have made one of that name.
Result<UniqueFd> MakeLocked(int base, const std::string& name, mode_t mode) {
  for (int round = 0;; ++round) {
    Status made = sys::MakeDirectory(base, name, mode);
    if (!made.ok() && (round == 0 || made.error().err != EEXIST)) return std::move(made).error();
    Result<UniqueFd> fd = OpenComponent(base, name, kDirectory);
    if (fd.ok() && TRY(sys::Stat(fd->get())).st_uid == ::geteuid() &&
        sys::LockNamed(fd->get(), LOCK_EX, base, name))
      return fd;
    if (round == kLockRounds)
      return Error(Kind::kSystem, Text("'", name, "' keeps being locked by another process"),
                   EBUSY);
    TRY(sys::Poll(-1, 0, 1));
  }
}

}  // namespace

ScratchDirectory::~ScratchDirectory() {
  if (!directory_.valid()) return;
  (void)RemoveTree(base_.get(), name_);  // ignoring: the next one of this user takes it
}

Result<ScratchDirectory> ScratchDirectory::Make(std::string_view purpose,
                                                const std::string& run_id) {
  return MakeIn(BasePath(), purpose, run_id, 0700);
}

Result<ScratchDirectory> ScratchDirectory::MakePassable(std::string_view purpose,
                                                        const std::string& run_id) {
  return MakeIn(kSharedBase, purpose, run_id, 0711);
}

Result<ScratchDirectory> ScratchDirectory::MakeIn(const std::string& base, std::string_view purpose,
                                                  const std::string& run_id, mode_t mode) {
  std::string prefix = Text("taskcell-", purpose, "-", ::geteuid(), "-");
  ScratchDirectory made;
  made.base_ = TRY(sys::Open(base, kDirectory));
  RemoveLeftovers(made.base_.get(), prefix);
  made.name_ = prefix + run_id;
  made.directory_ = TRY(MakeLocked(made.base_.get(), made.name_, mode));
  made.path_ = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", made.directory_.get())));
  return made;
}

}  // namespace taskcell::mounts
