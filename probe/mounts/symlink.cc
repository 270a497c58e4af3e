#include "probe/mounts/symlink.h"

#include <fcntl.h>
#include <linux/magic.h>

#include <cerrno>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::probe::audit {
namespace {

constexpr std::size_t kMaxShown = 256;
constexpr uint64_t kResolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;

std::string Shown(std::string_view target) {
  std::string shown = Printable(target.substr(0, kMaxShown));
  return Text("to '", shown, target.size() > kMaxShown ? "...'" : "'");
}

bool LeadsIntoProc(std::string_view target) {
  return target == "/proc" || target.starts_with("/proc/");
}

// Of what has no end but for a magic link in it: without the rule against those the kernel refuses
// them as leading out.
Leads InCircles(int root_fd, const std::string& path, std::string_view target) {
  Result<UniqueFd> end = sys::OpenAt2(root_fd, path, O_PATH, RESOLVE_BENEATH);
  if (!end.ok() && end.error().err == ELOOP)
    return {Code::kSymlinkUnresolved, Text(Shown(target), ": a loop, or too many links")};
  return {Code::kMagicLink, Text(Shown(target), ", by way of a magic link")};
}

// The path of `fd` below `root_fd`, or none where the kernel does not say.
Result<std::string> PathBelow(int root_fd, int fd) {
  std::string root = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", root_fd)));
  std::string path = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", fd)));
  if (root == "/") return path.substr(1);
  if (path == root) return std::string();
  if (!path.starts_with(root + "/")) return Error(Kind::kViolation, "it was moved", ESTALE);
  return path.substr(root.size() + 1);
}

Leads Inside(int root_fd, int fd, std::string_view target,
             const std::function<bool(std::string_view)>& may_lead_to) {
  if (!may_lead_to) return {Code::kSymlinkInside, Shown(target)};
  Result<std::string> below = PathBelow(root_fd, fd);
  if (!below.ok()) return {Code::kSymlinkUnresolved, Shown(target)};
  if (may_lead_to(below.value())) return {Code::kSymlinkInside, Shown(target)};
  return {Code::kSymlinkEscapes, Text(Shown(target), ", which is not among the allowed entries")};
}

}  // namespace

Leads WhereLinkLeads(int root_fd, const std::string& path, int dir_fd, const std::string& name,
                     const std::function<bool(std::string_view)>& may_lead_to) {
  Result<std::string> target = sys::ReadLink(dir_fd, name);
  if (!target.ok()) return {Code::kSymlinkUnresolved, "it could not be read"};
  Result<sys::FileSystem> on = sys::FileSystemOf(dir_fd);
  if (LeadsIntoProc(target.value()) || (on.ok() && on->type == PROC_SUPER_MAGIC))
    return {Code::kMagicLink, Shown(target.value())};
  Result<UniqueFd> end = sys::OpenAt2(root_fd, path, O_PATH, kResolve);
  if (end.ok()) return Inside(root_fd, end->get(), target.value(), may_lead_to);
  switch (end.error().err) {
    case ENOENT:
    case ENOTDIR:
      return {Code::kSymlinkDangling, Text(Shown(target.value()), ", which is not there")};
    case EXDEV:
      return {Code::kSymlinkEscapes, Shown(target.value())};
    case ELOOP:
      return InCircles(root_fd, path, target.value());
    default:
      return {Code::kSymlinkUnresolved, Shown(target.value())};
  }
}

}  // namespace taskcell::probe::audit
