#include "launcher/mounts/scratch_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <optional>

#include "launcher/base/text.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "launcher/sys/locked_directory.h"

namespace taskcell::mounts {
namespace {

constexpr const char* kSharedBase = "/tmp";
constexpr std::size_t kMaxBaseEntries = 100'000;
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

std::string StartOf(std::string_view purpose) {
  return Text("taskcell-", purpose, "-", ::geteuid(), "-");
}

// What a name says, where it is that of one of this user's.
std::optional<AbandonedScratch> ReadName(std::string_view name) {
  constexpr std::size_t kRunIdDigits = 32;
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kFirst = "taskcell-";
  if (!name.starts_with(kFirst)) return std::nullopt;
  const std::string_view rest = name.substr(kFirst.size());
  const std::string purpose(rest.substr(0, rest.find('-')));
  const std::string start = StartOf(purpose);
  if (!name.starts_with(start)) return std::nullopt;
  const std::string run_id(name.substr(start.size()));
  if (run_id.size() != kRunIdDigits || run_id.find_first_not_of(kHex) != std::string::npos)
    return std::nullopt;
  return AbandonedScratch{"", purpose, run_id};
}

// Removes one where no process that lives holds it; with `dry_run` only says so.
bool RemoveAbandoned(int base, const std::string& name, bool dry_run) {
  Result<UniqueFd> fd = OpenComponent(base, name, kDirectory);
  if (!fd.ok()) return false;
  Result<struct stat> info = sys::Stat(fd->get());
  if (!info.ok() || info->st_uid != ::geteuid()) return false;
  if (!sys::LockNamed(fd->get(), LOCK_EX, base, name)) return false;
  return dry_run || RemoveTree(base, name).ok();
}

// Those of one purpose, that processes of this user left which were killed.
void RemoveLeftovers(int base, std::string_view start) {
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ListDirectory(base, kMaxBaseEntries);
  if (!entries.ok()) return;  // ignoring: leftovers stay for another time
  for (const sys::DirectoryEntry& entry : entries.value())
    if (entry.name.starts_with(start)) (void)RemoveAbandoned(base, entry.name, false);
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
  const std::string start = StartOf(purpose);
  ScratchDirectory made;
  made.base_ = TRY(sys::Open(base, kDirectory));
  RemoveLeftovers(made.base_.get(), start);
  made.name_ = start + run_id;
  made.directory_ = TRY(sys::MakeLockedDirectory(made.base_.get(), made.name_, mode));
  made.path_ = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", made.directory_.get())));
  return made;
}

std::vector<AbandonedScratch> RemoveAbandonedScratch(bool dry_run) {
  std::vector<AbandonedScratch> removed;
  std::vector<std::string> bases = {kSharedBase};
  if (std::string own = BasePath(); own != kSharedBase) bases.push_back(std::move(own));
  for (const std::string& path : bases) {
    Result<UniqueFd> base = sys::Open(path, kDirectory);
    if (!base.ok()) continue;
    Result<std::vector<sys::DirectoryEntry>> entries =
        sys::ListDirectory(base->get(), kMaxBaseEntries);
    if (!entries.ok()) continue;
    for (const sys::DirectoryEntry& entry : entries.value()) {
      std::optional<AbandonedScratch> found = ReadName(entry.name);
      if (!found.has_value() || !RemoveAbandoned(base->get(), entry.name, dry_run)) continue;
      found->path = Text(path, "/", entry.name);
      removed.push_back(std::move(*found));
    }
  }
  return removed;
}

}  // namespace taskcell::mounts
