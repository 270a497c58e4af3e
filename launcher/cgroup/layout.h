#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::cgroup {

// The resources a cell is limited in: three always, two where that is asked.
enum class Controller : uint8_t { kMemory, kPids, kCpu, kCpuset, kIo };
inline constexpr Controller kControllers[] = {Controller::kMemory, Controller::kPids,
                                              Controller::kCpu};
inline constexpr std::size_t kControllerCount = std::size(kControllers);
inline constexpr Controller kOptionalControllers[] = {Controller::kCpuset, Controller::kIo};
std::string_view Name(Controller controller);  // "memory", "pids", "cpu", "cpuset", "io"
// What v1 calls it, which differs for io alone: "blkio".
std::string_view NameOnV1(Controller controller);

enum class Mode : uint8_t {
  kNone,    // no cgroup hierarchy is mounted
  kV1,      // only v1 hierarchies
  kV2,      // only the unified hierarchy
  kHybrid,  // v1 hierarchies with controllers, and the unified one beside them
};
std::string_view Name(Mode mode);  // "none", "v1", "v2", "hybrid"

// One cgroup hierarchy as this process sees it.
struct Hierarchy {
  bool unified = false;
  std::vector<std::string> controllers;  // v1: as /proc/self/cgroup names them; unified: empty
  std::string own_path;                  // this process's cgroup, as in /proc/self/cgroup
  std::string mount_point;               // empty: not mounted here
  std::string mount_root;                // the cgroup that is mounted there
  uint32_t major = 0;                    // device of that mount
  uint32_t minor = 0;
  std::string mount_options;  // of the file system, comma-separated
  bool read_only = false;     // the mount or its file system
};

// Every hierarchy this process is in.
struct Layout {
  Mode mode = Mode::kNone;
  std::vector<Hierarchy> hierarchies;

  // The hierarchy that holds a controller: the v1 one that names it, else the unified one, else
  // nullptr. Whether the unified one offers it is up to its cgroup.controllers files. `name` is a
  // kernel name, such as "cpuacct".
  const Hierarchy* Find(std::string_view name) const;
  const Hierarchy* Find(Controller controller) const { return Find(NameOnV1(controller)); }
};

// Where a cgroup path from /proc/<pid>/cgroup lies below the hierarchy's mount point: "" for the
// mount point itself, "a/b", or nothing when it is outside of what is mounted (cgroups(7): the
// mount may show a sub-tree only, and a path outside the reader's cgroup namespace begins with
// "/.."). Pure.
std::optional<std::string> BelowMount(const Hierarchy& hierarchy, std::string_view cgroup_path);

// One line of /proc/<pid>/cgroup.
struct Membership {
  std::vector<std::string> controllers;  // empty: the unified hierarchy
  std::string path;
};
inline constexpr std::size_t kMaxProcCgroupBytes = 256U << 10U;
// Parses /proc/<pid>/cgroup whole; a malformed line is kViolation. Pure.
Result<std::vector<Membership>> ParseMemberships(std::string_view text);

// Combines /proc/self/cgroup and /proc/self/mountinfo. Where a hierarchy is mounted more than once,
// the last mount that shows this process's own cgroup is taken, else the last one. Pure.
Result<Layout> ParseLayout(std::string_view proc_cgroup, std::string_view mountinfo);

// ParseLayout on the files of this process.
Result<Layout> ReadLayout();

// True when a v1 hierarchy holds each of memory, pids and cpu. From /proc/self/cgroup alone, which
// costs a tenth of ReadLayout. Pure.
bool AllOnV1(const std::vector<Membership>& memberships);
Result<bool> ReadAllOnV1();

}  // namespace taskcell::cgroup
