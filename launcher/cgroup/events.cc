#include "launcher/cgroup/events.h"

#include <algorithm>
#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/observe.h"

namespace taskcell::cgroup {
namespace {

enum class Count : uint8_t { kOomKills, kPidsRefusals, kPeakMemory, kCpuUs, kCpuNs, kThrottles };

void Raise(std::optional<uint64_t>& into, uint64_t value) {
  into = std::max(into.value_or(0), value);
}

void Note(Count count, uint64_t value, Events& events) {
  constexpr uint64_t kNsOfUs = 1000;
  switch (count) {
    case Count::kOomKills:
      events.oom_kills = std::max(events.oom_kills, value);
      break;
    case Count::kPidsRefusals:
      events.pids_refusals = std::max(events.pids_refusals, value);
      break;
    case Count::kPeakMemory:
      Raise(events.peak_memory_bytes, value);
      break;
    case Count::kCpuUs:
      Raise(events.cpu_us, value);
      break;
    case Count::kCpuNs:
      Raise(events.cpu_us, value / kNsOfUs);
      break;
    case Count::kThrottles:
      Raise(events.cpu_throttles, value);
      break;
  }
}

}  // namespace

struct EventFiles::Source {
  const char* file;
  std::string_view key;  // of a line; empty: the file holds one number
  Controller controller;
  bool unified;
  Count count;
};

namespace {

constexpr EventFiles::Source kSources[] = {
    {"memory.events", "oom_kill", Controller::kMemory, true, Count::kOomKills},
    {"memory.peak", "", Controller::kMemory, true, Count::kPeakMemory},
    {"memory.oom_control", "oom_kill", Controller::kMemory, false, Count::kOomKills},
    {"memory.max_usage_in_bytes", "", Controller::kMemory, false, Count::kPeakMemory},
    {"pids.events", "max", Controller::kPids, true, Count::kPidsRefusals},
    {"pids.events", "max", Controller::kPids, false, Count::kPidsRefusals},
    {"cpu.stat", "usage_usec", Controller::kCpu, true, Count::kCpuUs},
    {"cpu.stat", "nr_throttled", Controller::kCpu, true, Count::kThrottles},
    {"cpu.stat", "nr_throttled", Controller::kCpu, false, Count::kThrottles},
    // v1 counts the time in a controller of its own, cpuacct, which may have its own hierarchy.
    {"cpuacct.usage", "", Controller::kCpu, false, Count::kCpuNs},
};

}  // namespace

Status EventFiles::Add(int cgroup_fd, bool unified, Controller controller) {
  for (const Source& source : kSources) {
    if (source.unified != unified || source.controller != controller) continue;
    std::optional<UniqueFd> fd = TRY(OpenRecord(cgroup_fd, source.file));
    if (fd) files_.push_back({&source, std::move(*fd)});
  }
  return Ok();
}

Result<Events> EventFiles::Read() const {
  Events events;
  for (const File& file : files_) {
    const Source& source = *file.source;
    std::string text = TRY(ReadRecord(file.fd.get()).With(source.file));
    std::optional<uint64_t> value =
        source.key.empty() ? ParseUnsigned(text) : ValueOf(text, source.key);
    if (value) {
      Note(source.count, *value, events);
    } else if (source.key.empty()) {
      return Error(Kind::kViolation,
                   Text(source.file, " holds '", Printable(text), "', which is no number"));
    }
  }
  return events;
}

Result<Events> ReadEventsOf(const cell::OutsideAttestation& outside) {
  Layout layout = TRY(ReadLayout());
  return ReadEventsIn(layout, outside);
}

namespace {

Status AddLevels(const Location& location, Controller controller, EventFiles& files) {
  UniqueFd mount = TRY(OpenMount(*location.hierarchy));
  for (const std::string& below : LevelsOfCell(location.below)) {
    UniqueFd level = TRY(OpenCgroup(mount.get(), below));
    TRY(files.Add(level.get(), location.hierarchy->unified, controller));
  }
  return Ok();
}

}  // namespace

Result<Events> ReadEventsIn(const Layout& layout, const cell::OutsideAttestation& outside) {
  EventFiles files;
  for (Controller controller : kControllers) {
    std::optional<Location> location = TRY(Locate(layout, outside.cgroups, Name(controller)));
    if (!location)
      return Error(Kind::kUnsupported, Text("the ", Name(controller), " cgroup of process ",
                                            outside.host_pid, " is not visible from here"));
    TRY(AddLevels(*location, controller, files));
    if (controller != Controller::kCpu) continue;
    // A cell that was not moved in cpuacct's own hierarchy too shares that cgroup with others, so
    // its figure says nothing.
    std::optional<Location> counted = TRY(Locate(layout, outside.cgroups, "cpuacct"));
    if (counted && counted->hierarchy != location->hierarchy && counted->below == location->below)
      TRY(AddLevels(*counted, controller, files));
  }
  return files.Read();
}

}  // namespace taskcell::cgroup
