#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/mount_info.h"
#include "launcher/base/result.h"
#include "probe/engine/endpoint.h"

namespace taskcell::probe {

// The file that says that this process runs in a container ("/.dockerenv"); empty: none does.
std::string ContainerMarker();

// Where a path leads: the same place has the same everywhere, whatever it is called there.
struct PlaceOnDisk {
  uint32_t major = 0;  // of the file system
  uint32_t minor = 0;
  std::string path;  // in the file system
  bool operator==(const PlaceOnDisk&) const = default;
};

// By the mounts of one process; `path` is canonical. nullopt where they make no sense. Pure.
std::optional<PlaceOnDisk> FindPlace(const std::vector<MountInfoLine>& mounts,
                                     std::string_view path);

// Whether a process in a container sees of the host what an engine outside makes cells of: the
// engine's processes (the host's pid namespace), their cgroups (/sys/fs/cgroup), and each of
// `paths` (canonical) as the same place. An Error (kUnsupported, docker_unreachable) names the
// first that is missing and the option that maps it. What cannot be looked up is left to the cell's
// own attestation. Outside a container everything is shared.
Status CheckSharedHost(const Endpoint& endpoint, const std::vector<std::string>& paths);

}  // namespace taskcell::probe
