#include "probe/cells/shared_host.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "launcher/sys/file.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/socket.h"

namespace taskcell::probe {
namespace {

bool Covers(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return true;
  return path.starts_with(mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

// The mount that a path from the root begins in: its parent is not among those that are seen.
const MountInfoLine* FindRoot(const std::vector<MountInfoLine>& mounts) {
  for (const MountInfoLine& mount : mounts) {
    if (mount.mount_point != "/") continue;
    const bool has_parent = std::any_of(mounts.begin(), mounts.end(), [&](const auto& other) {
      return other.id == mount.parent && other.id != mount.id;
    });
    if (!has_parent) return &mount;
  }
  return nullptr;
}

Result<std::vector<MountInfoLine>> MountsOf(std::string_view process) {
  const std::string text = TRY(sys::ReadProc(Text(process, "/mountinfo"), kMaxMountInfoBytes));
  return ParseMountInfo(text);
}

// Whether the cgroups of `process` can be found below what is mounted here.
Result<bool> AreCgroupsSeen(std::string_view process) {
  const cgroup::Layout layout = TRY(cgroup::ReadLayout());
  const std::string text =
      TRY(sys::ReadProc(Text(process, "/cgroup"), cgroup::kMaxProcCgroupBytes));
  const std::vector<cgroup::Membership> memberships = TRY(cgroup::ParseMemberships(text));
  for (cgroup::Controller controller : {cgroup::Controller::kMemory, cgroup::Controller::kPids}) {
    const cgroup::Hierarchy* hierarchy = layout.Find(controller);
    if (hierarchy == nullptr || hierarchy->mount_point.empty()) return false;
    for (const cgroup::Membership& membership : memberships)
      if (membership.controllers == hierarchy->controllers &&
          !cgroup::BelowMount(*hierarchy, membership.path).has_value())
        return false;
  }
  return true;
}

}  // namespace

std::string ContainerMarker() {
  for (const char* marker : {"/.dockerenv", "/run/.containerenv"})
    if (sys::StatAt(AT_FDCWD, marker).ok()) return marker;
  return "";
}

std::optional<PlaceOnDisk> FindPlace(const std::vector<MountInfoLine>& mounts,
                                     std::string_view path) {
  const MountInfoLine* on = FindRoot(mounts);
  if (on == nullptr) return std::nullopt;
  // Of what is mounted on it, the path comes to the shortest first; the rest lies hidden below.
  for (std::size_t steps = 0; steps < mounts.size(); ++steps) {
    const MountInfoLine* next = nullptr;
    for (const MountInfoLine& mount : mounts) {
      const bool is_on_it = mount.parent == on->id && mount.id != on->id;
      if (!is_on_it || !Covers(mount.mount_point, path)) continue;
      if (next == nullptr || mount.mount_point.size() < next->mount_point.size()) next = &mount;
    }
    if (next == nullptr) break;
    on = next;
  }
  const std::string_view below =
      on->mount_point == "/" ? path : path.substr(on->mount_point.size());
  PlaceOnDisk place{on->major, on->minor, on->root == "/" ? std::string() : on->root};
  if (below != "/") place.path += below;
  return place;
}

Status CheckSharedHost(const Endpoint& endpoint, const std::vector<std::string>& paths) {
  const std::string marker = ContainerMarker();
  if (marker.empty()) return Ok();
  auto missing = [&](std::string_view what) {
    return Error(Kind::kUnsupported,
                 Text("engine at ", endpoint.Describe(), ": this program runs in a container (",
                      marker, ") that does not share enough with the host: ", what))
        .Coded("docker_unreachable");
  };
  Result<UniqueFd> connection = sys::ConnectUnix(endpoint.socket_path, SOCK_STREAM);
  if (!connection.ok()) return std::move(connection).error().Coded("docker_unreachable");
  const struct ucred peer = TRY(sys::PeerCredentials(connection->get()));
  if (peer.pid == 0)
    return missing(
        "the engine's processes are not seen; start the container with the host's pid namespace "
        "(--pid=host)");
  const std::string process = Text(peer.pid);
  const Result<std::vector<MountInfoLine>> own = MountsOf("self");
  const Result<std::vector<MountInfoLine>> engines = MountsOf(process);
  if (own.ok() && engines.ok()) {
    for (const std::string& path : paths)
      if (FindPlace(own.value(), path) != FindPlace(engines.value(), path))
        return missing(Text("`", Printable(path),
                            "` is another place for the engine; map it at the "
                            "same path (-v ",
                            Printable(path), ":", Printable(path), ")"));
  }
  const Result<bool> seen = AreCgroupsSeen(process);
  if (seen.ok() && !seen.value())
    return missing(
        "/sys/fs/cgroup shows the container's own cgroups alone; map the host's "
        "(-v /sys/fs/cgroup:/sys/fs/cgroup:ro, and with cgroup v2 --cgroupns=host)");
  return Ok();
}

}  // namespace taskcell::probe
