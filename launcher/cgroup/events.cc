#include "launcher/cgroup/events.h"

#include <algorithm>
#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/observe.h"

namespace taskcell::cgroup {
namespace {

// The number after `key` in a file of such lines, or the only number of the file when `key` is
// empty.
Result<std::optional<uint64_t>> ReadCounter(int cgroup_fd, const std::string& file,
                                            std::string_view key) {
  std::optional<std::string> text = TRY(ReadRecord(cgroup_fd, file));
  if (!text) return std::optional<uint64_t>();
  std::optional<uint64_t> value = key.empty() ? ParseUnsigned(*text) : ValueOf(*text, key);
  if (!value && key.empty())
    return Error(Kind::kViolation,
                 Text(file, " holds '", Printable(*text), "', which is no number"));
  return value;
}

void Raise(std::optional<uint64_t>& into, std::optional<uint64_t> value) {
  if (value) into = std::max(into.value_or(0), *value);
}

Status AddThrottles(int cgroup_fd, Events& events) {
  Raise(events.cpu_throttles, TRY(ReadCounter(cgroup_fd, "cpu.stat", "nr_throttled")));
  return Ok();
}

}  // namespace

Status AddEvents(int cgroup_fd, bool unified, Controller controller, Events& events) {
  std::optional<uint64_t> value;
  switch (controller) {
    case Controller::kMemory:
      value =
          TRY(ReadCounter(cgroup_fd, unified ? "memory.events" : "memory.oom_control", "oom_kill"));
      events.oom_kills = std::max(events.oom_kills, value.value_or(0));
      value =
          TRY(ReadCounter(cgroup_fd, unified ? "memory.peak" : "memory.max_usage_in_bytes", ""));
      Raise(events.peak_memory_bytes, value);
      return Ok();
    case Controller::kPids:
      value = TRY(ReadCounter(cgroup_fd, "pids.events", "max"));
      events.pids_refusals = std::max(events.pids_refusals, value.value_or(0));
      return Ok();
    case Controller::kCpu:
      value = unified ? TRY(ReadCounter(cgroup_fd, "cpu.stat", "usage_usec"))
                      : TRY(ReadCounter(cgroup_fd, "cpuacct.usage", ""));
      if (value && !unified) *value /= 1000;  // nanoseconds
      Raise(events.cpu_us, value);
      return AddThrottles(cgroup_fd, events);
  }
  return Ok();
}

Result<Events> ReadEventsOf(const cell::OutsideAttestation& outside) {
  Layout layout = TRY(ReadLayout());
  return ReadEventsIn(layout, outside);
}

namespace {

// Calls `add(fd)` for each level of a cell.
template <typename Add>
Status ForLevels(const Location& location, Add add) {
  UniqueFd mount = TRY(OpenMount(*location.hierarchy));
  for (const std::string& below : LevelsOfCell(location.below)) {
    UniqueFd level = TRY(OpenCgroup(mount.get(), below));
    TRY(add(level.get()));
  }
  return Ok();
}

}  // namespace

Result<Events> ReadEventsIn(const Layout& layout, const cell::OutsideAttestation& outside) {
  Events events;
  for (Controller controller : kControllers) {
    std::optional<Location> location = TRY(Locate(layout, outside.cgroups, Name(controller)));
    if (!location)
      return Error(Kind::kUnsupported, Text("the ", Name(controller), " cgroup of process ",
                                            outside.host_pid, " is not visible from here"));
    if (controller == Controller::kCpu) {
      TRY(ForLevels(*location, [&](int fd) { return AddThrottles(fd, events); }));
      // v1 counts the time in a controller of its own. A cell that was not moved there too shares
      // that cgroup with others, so its figure says nothing.
      std::optional<Location> counted = TRY(Locate(layout, outside.cgroups, "cpuacct"));
      if (!counted || counted->below != location->below) continue;
      location = std::move(counted);
    }
    TRY(ForLevels(*location, [&](int fd) {
      return AddEvents(fd, location->hierarchy->unified, controller, events);
    }));
  }
  return events;
}

}  // namespace taskcell::cgroup
