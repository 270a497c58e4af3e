#include "gateway/task/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "launcher/sys/random.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kWorkspaceFailed = "workspace_failed";
constexpr mode_t kPermissions = 07777;

// How often the levels above may vanish while a run is made: another one that ended removes those
// it finds empty.
constexpr int kAttempts = 64;

Error WorkspaceFailed(std::string_view why, int err = 0) {
  return Error(Kind::kConfig, Text("the sandbox workspace could not be created: ", why), err)
      .Coded(kWorkspaceFailed);
}

// Whether somebody gave `fd` an SELinux type that what is made in `parent_fd` does not have.
bool HasLabelOfItsOwn(int fd, int parent_fd) {
  constexpr std::size_t kType = 2;
  std::array<std::string, 2> types;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Result<std::string> label =
        sys::ReadAttribute(i == 0 ? fd : parent_fd, "security.selinux");
    if (!label.ok()) return false;
    const std::vector<std::string_view> parts = Split(label.value(), ':');
    if (parts.size() > kType) types[i] = parts[kType];
  }
  return types[0] != types[1];
}

}  // namespace

Result<UniqueFd> OpenPrivate(int dir_fd, const std::string& name, bool must_be_new) {
  Status made = sys::MakeDirectory(dir_fd, name, 0700);
  if (!made.ok() && (must_be_new || made.error().err != EEXIST))
    return WorkspaceFailed(made.error().text, made.error().err);
  Result<UniqueFd> opened =
      sys::OpenAt2(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, sys::kResolveBeneath);
  if (!opened.ok()) {
    if (made.ok()) (void)sys::RemoveDirectory(dir_fd, name);  // ignoring: it is told already
    return WorkspaceFailed(opened.error().text, opened.error().err);
  }
  struct stat info = TRY(sys::Stat(opened->get()));
  if (info.st_uid != ::geteuid() || (info.st_mode & kPermissions) != 0700)
    return WorkspaceFailed(Text("'", name, "' must belong to this user and have mode 0700"));
  return opened;
}

Result<std::string> MakeRunId() {
  constexpr std::size_t kIdBytes = 16;
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, kIdBytes> bytes;
  TRY(sys::FillRandom(bytes));
  std::string id;
  for (unsigned char byte : bytes) {
    id += kHex[byte >> 4U];
    id += kHex[byte & 15U];
  }
  return id;
}

Result<RunDirectory> RunDirectory::Make(const Home& home, const std::string& run_id) {
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    Result<RunDirectory> made = TryMake(home, run_id);
    if (made.ok() || made.error().err != ENOENT) return made;
  }
  return TryMake(home, run_id);
}

Result<RunDirectory> RunDirectory::TryMake(const Home& home, const std::string& run_id) {
  RunDirectory run;
  run.home_ = TRY(sys::Duplicate(home.fd.get()));
  run.run_id_ = run_id;
  run.path_ = Text(home.path, "/sandbox/runs/", run_id);
  run.sandbox_ = TRY(OpenPrivate(home.fd.get(), "sandbox", false));
  run.runs_ = TRY(OpenPrivate(run.sandbox_.get(), "runs", false));
  run.snapshots_path_ = Text(home.path, "/sandbox/snap");
  run.snapshots_ = TRY(OpenPrivate(run.sandbox_.get(), "snap", false));
  run.own_ = TRY(OpenPrivate(run.runs_.get(), run_id, true));
  Status locked = sys::Lock(run.own_.get(), LOCK_EX | LOCK_NB);
  if (!locked.ok()) return WorkspaceFailed(locked.error().text);
  return run;
}

RunDirectory::~RunDirectory() {
  if (!own_.valid()) return;
  (void)Remove();  // ignoring: whoever cares has called it and read the result
  RemoveEmptyParents();
}

Status RunDirectory::Remove() {
  if (!own_.valid()) return Ok();
  TRY(mounts::RemoveTree(runs_.get(), run_id_));
  own_.Reset();
  return Ok();
}

void RunDirectory::RemoveEmptyParents() const {
  // ignoring all: they are not empty when another run is there, or ever was
  if (!sys::RemoveDirectory(sandbox_.get(), "runs").ok()) return;
  (void)sys::RemoveDirectory(sandbox_.get(), "snap");
  if (HasLabelOfItsOwn(sandbox_.get(), home_.get())) return;
  (void)sys::RemoveDirectory(home_.get(), "sandbox");
}

}  // namespace taskcell::gateway
