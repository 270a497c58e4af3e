// Root file systems with links where a cell's mounts go. Nothing runs in the cell: what is attacked
// is who makes it.
#include "probe/attack/payloads/roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "roots";

constexpr HostileRoot kRoots[] = {
    {"cve-2021-30465-mount-target", "workspace", "workspace"},
    {"cve-2025-52881-root-proc", "proc", "proc"},
    {"cve-2025-52565-root-dev", "dev", "dev"},
    {"hostile-root-relative-link", "tmp", "tmp", true},
    {"hostile-root-parent-link", "run/taskcell/attack", "run"},
    {"cve-2021-30465-exchanged-target", "workspace", "exchanged"},
};

uint64_t DeviceAt(const std::string& path) {
  struct stat info = {};
  return Call(SYS_newfstatat, AT_FDCWD, path.c_str(), &info, 0) == 0 ? info.st_dev : 0;
}

// What a maker of cells does that trusts the names in a root: mount(2) follows the link.
template <std::size_t kIndex>
Attempted MountOverLink(const Targets& targets) {
  const HostileRoot& root = kRoots[kIndex];
  std::string place = Text(targets.roots, "/", root.payload, "/", root.target);
  std::string lands = targets.canary + std::string(root.target.substr(root.link.size()));
  uint64_t before = DeviceAt(lands);
  int64_t mounted = Call(SYS_mount, "none", place.c_str(), "tmpfs", 0, 0);
  if (mounted < 0) return Of(mounted, place);
  if (DeviceAt(lands) != before) return {0, Text("it landed at ", lands)};
  return {kNoEffect, "it landed in the root"};
}

// With the link in the target's place half of the time.
Attempted MountOverExchanged(const Targets& targets) {
  constexpr int kTries = 1000;
  const HostileRoot& root = kRoots[5];
  const std::string place = Text(targets.roots, "/", root.payload, "/", root.target);
  const uint64_t before = DeviceAt(targets.canary);
  for (int tries = 0; tries < kTries; ++tries) {
    int64_t mounted = Call(SYS_mount, "none", place.c_str(), "tmpfs", 0, 0);
    if (mounted < 0) return Of(mounted, place);
    if (DeviceAt(targets.canary) != before) return {0, Text("it landed at ", targets.canary)};
  }
  return {kNoEffect, "it landed in the root each time"};
}

constexpr Payload kPayloads[] = {
    {kRoots[0].payload,
     kTopic,
     "redirect a mount by a link at its target",
     Control::kNamespace,
     {ELOOP},
     MountOverLink<0>,
     Way::kRoot},
    {kRoots[1].payload,
     kTopic,
     "redirect /proc, and what is written to it, by a link",
     Control::kNamespace,
     {ELOOP},
     MountOverLink<1>,
     Way::kRoot},
    {kRoots[2].payload,
     kTopic,
     "redirect /dev, and the devices in it, by a link",
     Control::kNamespace,
     {ELOOP},
     MountOverLink<2>,
     Way::kRoot},
    {kRoots[3].payload,
     kTopic,
     "redirect a mount by a link that climbs out",
     Control::kNamespace,
     {ELOOP},
     MountOverLink<3>,
     Way::kRoot},
    {kRoots[4].payload,
     kTopic,
     "redirect a mount by a link above its target",
     Control::kNamespace,
     {ELOOP},
     MountOverLink<4>,
     Way::kRoot},
    {kRoots[5].payload,
     kTopic,
     "redirect a mount by exchanging its target for a link meanwhile",
     Control::kNamespace,
     {ELOOP},
     MountOverExchanged,
     Way::kExchanged},
};

}  // namespace

std::span<const HostileRoot> HostileRoots() { return kRoots; }

const HostileRoot* FindHostileRoot(std::string_view payload) {
  for (const HostileRoot& root : kRoots)
    if (root.payload == payload) return &root;
  return nullptr;
}

std::span<const Payload> RootPayloads() { return kPayloads; }

}  // namespace taskcell::attack
