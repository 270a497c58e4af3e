#include "launcher/cgroup/cpuset.h"

#include <fcntl.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/sys/file.h"

namespace taskcell::cgroup {
namespace {

// The cgroup above is not below the directory, so openat2's rules do not reach it: it is opened by
// its one name, which in a cgroup file system is nobody's link.
Result<UniqueFd> OpenAbove(int cgroup_fd) {
  return sys::OpenAt2(cgroup_fd, "..", O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
}

Status InheritFile(int cgroup_fd, int above_fd, const char* file, const char* in_force) {
  std::optional<std::string> own = TRY(ReadRecord(cgroup_fd, file));
  if (!own || !own->empty()) return Ok();
  std::optional<std::string> list = TRY(ReadRecord(above_fd, in_force));
  if (!list || list->empty())
    return Error(Kind::kUnsupported, Text("the cgroup above has no ", file));
  return sys::WriteControl(cgroup_fd, file, *list);
}

}  // namespace

Status InheritCpuset(int cgroup_fd) {
  UniqueFd above = TRY(OpenAbove(cgroup_fd));
  TRY(InheritFile(cgroup_fd, above.get(), "cpuset.cpus", kCpusInForceV1));
  return InheritFile(cgroup_fd, above.get(), "cpuset.mems", "cpuset.effective_mems");
}

Result<std::optional<std::string>> ReadCpusInForce(int directory_fd, const std::string& prefix,
                                                   bool unified) {
  return ReadRecord(directory_fd, prefix + (unified ? kCpusInForceV2 : kCpusInForceV1));
}

Status ApplyCpuset(int cgroup_fd, bool unified, const std::string& list) {
  if (!unified) TRY(InheritCpuset(cgroup_fd));
  std::optional<std::string> available = TRY(ReadCpusInForce(cgroup_fd, "", unified));
  Status written = sys::WriteControl(cgroup_fd, "cpuset.cpus", list);
  std::optional<std::string> found = TRY(ReadCpusInForce(cgroup_fd, "", unified));
  if (written.ok() && found == list) return Ok();
  return Error(Kind::kUnsupported,
               Text("not all of the processors ", list, " can be had here, which are ",
                    available ? Printable(*available) : "unknown", ": ask for some of those"),
               written.ok() ? EINVAL : written.error().err);
}

}  // namespace taskcell::cgroup
