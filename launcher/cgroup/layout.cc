#include "launcher/cgroup/layout.h"

#include <fcntl.h>

#include <algorithm>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/sys/proc.h"

namespace taskcell::cgroup {
namespace {

bool Holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A v1 mount carries its controllers (or name=...) in the super block options; the membership line
// names all of them.
bool IsMountOf(const MountInfoLine& line, const Hierarchy& hierarchy) {
  if (hierarchy.unified) return line.type == "cgroup2";
  return line.type == "cgroup" && !hierarchy.controllers.empty() &&
         HasMountOption(line.super_options, hierarchy.controllers.front());
}

void AddMount(const std::vector<MountInfoLine>& mounts, Hierarchy& hierarchy) {
  bool own_is_shown = false;
  for (const MountInfoLine& line : mounts) {
    if (!IsMountOf(line, hierarchy)) continue;
    Hierarchy candidate = hierarchy;
    candidate.mount_point = line.mount_point;
    candidate.mount_root = line.root;
    candidate.major = line.major;
    candidate.minor = line.minor;
    candidate.mount_options = line.super_options;
    candidate.read_only =
        HasMountOption(line.options, "ro") || HasMountOption(line.super_options, "ro");
    bool shown = BelowMount(candidate, hierarchy.own_path).has_value();
    if (own_is_shown && !shown) continue;
    own_is_shown = shown;
    hierarchy = std::move(candidate);
  }
}

Result<std::string> ReadMemberships() { return sys::ReadProc("self/cgroup", kMaxProcCgroupBytes); }

Mode ModeOf(const std::vector<Hierarchy>& hierarchies) {
  bool unified = false;
  bool v1 = false;
  for (const Hierarchy& each : hierarchies) {
    if (each.mount_point.empty()) continue;
    if (each.unified) unified = true;
    // A named hierarchy (systemd's own) carries no controller and says nothing about limits.
    if (!each.unified && each.controllers.front().substr(0, 5) != "name=") v1 = true;
  }
  if (unified && v1) return Mode::kHybrid;
  if (unified) return Mode::kV2;
  return v1 ? Mode::kV1 : Mode::kNone;
}

}  // namespace

std::string_view Name(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return "memory";
    case Controller::kPids:
      return "pids";
    case Controller::kCpu:
      return "cpu";
    case Controller::kCpuset:
      return "cpuset";
    case Controller::kIo:
      return "io";
  }
  return "";
}

std::string_view NameOnV1(Controller controller) {
  return controller == Controller::kIo ? "blkio" : Name(controller);
}

std::string_view Name(Mode mode) {
  switch (mode) {
    case Mode::kNone:
      return "none";
    case Mode::kV1:
      return "v1";
    case Mode::kV2:
      return "v2";
    case Mode::kHybrid:
      return "hybrid";
  }
  return "";
}

const Hierarchy* Layout::Find(std::string_view name) const {
  const Hierarchy* unified = nullptr;
  for (const Hierarchy& each : hierarchies) {
    if (Holds(each.controllers, name)) return &each;
    if (each.unified) unified = &each;
  }
  return unified;
}

std::optional<std::string> BelowMount(const Hierarchy& hierarchy, std::string_view cgroup_path) {
  if (hierarchy.mount_point.empty() || cgroup_path.empty() || cgroup_path[0] != '/') return {};
  for (std::string_view component : Split(cgroup_path, '/')) {
    if (component == "..") return {};
  }
  std::string_view root = hierarchy.mount_root;
  if (root != "/") {
    if (cgroup_path.substr(0, root.size()) != root) return {};
    cgroup_path.remove_prefix(root.size());
    if (!cgroup_path.empty() && cgroup_path[0] != '/') return {};
  }
  while (!cgroup_path.empty() && cgroup_path[0] == '/') cgroup_path.remove_prefix(1);
  return std::string(cgroup_path);
}

Result<std::vector<Membership>> ParseMemberships(std::string_view text) {
  if (text.size() > kMaxProcCgroupBytes) {
    return Error(Kind::kViolation,
                 Text("/proc/<pid>/cgroup has more than ", kMaxProcCgroupBytes, " bytes"));
  }
  std::vector<Membership> memberships;
  for (std::string_view line : Split(text, '\n')) {
    if (line.empty()) continue;
    std::size_t first = line.find(':');
    std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos || !ParseUnsigned(line.substr(0, first)) ||
        line.substr(second + 1, 1) != "/") {
      return Error(Kind::kViolation, Text("/proc/<pid>/cgroup line is not as cgroups(7) says: '",
                                          Printable(line), "'"));
    }
    Membership membership;
    std::string_view names = line.substr(first + 1, second - first - 1);
    if (!names.empty()) {
      for (std::string_view name : Split(names, ',')) membership.controllers.emplace_back(name);
    }
    membership.path = line.substr(second + 1);
    memberships.push_back(std::move(membership));
  }
  return memberships;
}

Result<Layout> ParseLayout(std::string_view proc_cgroup, std::string_view mountinfo) {
  std::vector<Membership> memberships = TRY(ParseMemberships(proc_cgroup));
  std::vector<MountInfoLine> mounts = TRY(ParseMountInfo(mountinfo));
  Layout layout;
  for (Membership& membership : memberships) {
    Hierarchy hierarchy;
    hierarchy.unified = membership.controllers.empty();
    hierarchy.controllers = std::move(membership.controllers);
    hierarchy.own_path = std::move(membership.path);
    AddMount(mounts, hierarchy);
    layout.hierarchies.push_back(std::move(hierarchy));
  }
  layout.mode = ModeOf(layout.hierarchies);
  return layout;
}

bool AllOnV1(const std::vector<Membership>& memberships) {
  return std::all_of(std::begin(kControllers), std::end(kControllers), [&](Controller controller) {
    return std::any_of(memberships.begin(), memberships.end(), [&](const Membership& membership) {
      return Holds(membership.controllers, Name(controller));
    });
  });
}

Result<bool> ReadAllOnV1() {
  std::string memberships = TRY(ReadMemberships());
  return AllOnV1(TRY(ParseMemberships(memberships)));
}

Result<Layout> ReadLayout() {
  sys::Proc proc = TRY(sys::Proc::Open());
  std::string memberships = TRY(proc.Read("self/cgroup", kMaxProcCgroupBytes));
  std::string mounts = TRY(proc.Read("self/mountinfo", kMaxMountInfoBytes));
  return ParseLayout(memberships, mounts).With("find the cgroup hierarchies");
}

}  // namespace taskcell::cgroup
