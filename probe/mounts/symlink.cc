#include "probe/mounts/symlink.h"

#include <fcntl.h>
#include <linux/magic.h>

#include <cerrno>
#include <climits>
#include <string_view>

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

// A link, as WhereLinkLeads is given it.
struct Link {
  int root_fd;
  const std::string& path;
  int dir_fd;
  const std::string& name;
};

// Its end. Where its path is longer than the kernel takes, what stays below its own directory is
// found from there, which takes fewer descriptors.
Result<UniqueFd> EndOf(const Link& link, uint64_t resolve) {
  if (link.path.size() >= PATH_MAX) {
    Result<UniqueFd> end = sys::OpenAt2(link.dir_fd, link.name, O_PATH, resolve);
    if (end.ok() || end.error().err != EXDEV) return end;
  }
  return sys::OpenAt2(link.root_fd, link.path, O_PATH, resolve);
}

// Of what has no end but for a magic link in it: without the rule against those the kernel refuses
// them as leading out.
Leads InCircles(const Link& link, std::string_view target) {
  Result<UniqueFd> end = EndOf(link, RESOLVE_BENEATH);
  if (!end.ok() && end.error().err == ELOOP)
    return {Code::kSymlinkUnresolved, Text(Shown(target), ": a loop, or too many links")};
  return {Code::kMagicLink, Text(Shown(target), ", by way of a magic link")};
}

}  // namespace

Leads WhereLinkLeads(int root_fd, const std::string& path, int dir_fd, const std::string& name) {
  Result<std::string> target = sys::ReadLink(dir_fd, name);
  if (!target.ok()) return {Code::kSymlinkUnresolved, "it could not be read"};
  Result<sys::FileSystem> on = sys::FileSystemOf(dir_fd);
  if (LeadsIntoProc(target.value()) || (on.ok() && on->type == PROC_SUPER_MAGIC))
    return {Code::kMagicLink, Shown(target.value())};
  const Link link{root_fd, path, dir_fd, name};
  Result<UniqueFd> end = EndOf(link, kResolve);
  if (end.ok()) return {Code::kSymlinkInside, Shown(target.value())};
  switch (end.error().err) {
    case ENOENT:
    case ENOTDIR:
      return {Code::kSymlinkDangling, Text(Shown(target.value()), ", which is not there")};
    case EXDEV:
      return {Code::kSymlinkEscapes, Shown(target.value())};
    case ELOOP:
      return InCircles(link, target.value());
    default:
      return {Code::kSymlinkUnresolved, Shown(target.value())};
  }
}

}  // namespace taskcell::probe::audit
