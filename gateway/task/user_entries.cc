#include "gateway/task/user_entries.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "gateway/runtimes/plan_job.h"
#include "gateway/task/plan_task.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr mode_t kReadByAll = 0444;

std::string Passwd(const cell::CellPlan& plan) {
  return Text("root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:",
              "/usr/sbin/nologin\nagent:x:", plan.uid, ":", plan.gid, ":agent:", kJobHome,
              ":/bin/sh\n");
}

std::string Group(const cell::CellPlan& plan) {
  return Text("root:x:0:\nnogroup:x:65534:\nagent:x:", plan.gid, ":\n");
}

// Whatever the umask, the cell's user can read it.
Result<UniqueFd> Write(int dir_fd, const std::string& name, std::string_view content) {
  UniqueFd fd = TRY(sys::OpenAt2(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
                                 sys::kResolveBeneath, 0600));
  TRY(sys::WriteAll(fd.get(), content));
  TRY(sys::ChangeMode(fd.get(), kReadByAll));
  return fd;
}

bool HasFile(const NativeRoot& root, const std::string& path) {
  Result<UniqueFd> found =
      sys::OpenAt2(root.fd.get(), path, O_PATH | O_NOFOLLOW,
                   RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!found.ok()) return false;
  Result<struct stat> info = sys::Stat(found->get());
  return info.ok() && S_ISREG(info->st_mode);
}

Status PlanOne(const RunDirectory& directory, const NativeRoot& root, const std::string& name,
               std::string_view content, cell::CellPlan& plan, UserEntries& entries) {
  const std::string target = Text("/etc/", name);
  if (root.fd.valid() && !HasFile(root, target)) {
    entries.warnings.push_back(Text("[taskcell] root '", Printable(root.path),
                                    "' has no plain file ", target,
                                    " to mount the cell's own on, so its user may have no name "
                                    "there: make an empty one"));
    return Ok();
  }
  UniqueFd fd = TRY(Write(directory.fd(), name, content));
  const struct stat info = TRY(sys::Stat(fd.get()));
  plan.mounts.push_back(
      MountOf(Text(directory.path(), "/", name), target, cell::EntryKind::kFile, info));
  entries.pins.push_back(std::move(fd));
  return Ok();
}

}  // namespace

Result<UserEntries> PlanUserEntries(const RunDirectory& directory, const NativeRoot& root,
                                    cell::CellPlan& plan) {
  UserEntries entries;
  Status planned = PlanOne(directory, root, "passwd", Passwd(plan), plan, entries);
  if (planned.ok()) planned = PlanOne(directory, root, "group", Group(plan), plan, entries);
  if (!planned.ok())
    return std::move(planned).error().With("the cell's user").Coded("workspace_failed");
  return entries;
}

}  // namespace taskcell::gateway
