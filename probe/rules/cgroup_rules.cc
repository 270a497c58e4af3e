// What the cgroups are like at the moment, beside whether limits can be set in them.
#include <algorithm>

#include "launcher/base/text.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

using cgroup::Chain;
using cgroup::Level;

// The launcher's child, the cell's first process, its witness and the job.
constexpr uint64_t kTasksOfAStart = 4;

constexpr std::size_t kMostShown = 16;

Who WhoseIs(const Level& level, const HostFacts& facts) {
  return level.directory.uid == facts.cgroups.around.uid ? Who::kUser : Who::kAdmin;
}

std::string AsOwner(Who who) { return who == Who::kAdmin ? "as administrator: " : ""; }

std::optional<uint64_t> NumberIn(const Level& level, std::string_view file) {
  return ParseUnsigned(Trim(level.File(file).text));
}

// The level below whose limit the fewest more processes fit.
struct Room {
  const Level* level = nullptr;
  uint64_t tasks = 0;
};

void Narrow(const std::vector<Level>& levels, Room& room) {
  for (const Level& level : levels) {
    std::optional<uint64_t> most = NumberIn(level, "pids.max");
    std::optional<uint64_t> now = NumberIn(level, "pids.current");
    if (!most || !now) continue;
    uint64_t tasks = *most > *now ? *most - *now : 0;
    if (room.level == nullptr || tasks < room.tasks) room = {&level, tasks};
  }
}

// A process is made where its parent is, before it moves anywhere.
void AddRoom(const HostFacts& facts, Report& report) {
  const Chain* chain = facts.cgroups.Find("pids");
  if (chain == nullptr) return;
  Room room;
  Narrow(chain->levels, room);
  Narrow(chain->prepared, room);
  if (room.level == nullptr) return;
  const Level& level = *room.level;
  std::string file = level.FilePath("pids.max");
  std::string state = Text(Trim(level.File("pids.current").text), " of ",
                           Trim(level.File("pids.max").text), " processes");
  Finding finding{"cgroup.pids-room",
                  Verdict::kReady,
                  Text(room.tasks, " more processes fit below ", Printable(level.path)),
                  Who::kNone,
                  "",
                  {{file, state}}};
  if (room.tasks < kTasksOfAStart) {
    finding.verdict = Verdict::kNot;
    finding.reason = Text(Printable(level.path), " is full (", Printable(state),
                          "): a cell cannot be started, since fork fails (EAGAIN)");
    finding.who = WhoseIs(level, facts);
    finding.fix =
        Text(AsOwner(finding.who), "end processes there, or raise its limit: printf max >",
             ShellWord(file), " (of a unit: systemctl set-property UNIT TasksMax=)");
  }
  report.findings.push_back(std::move(finding));
}

// A cell over its own limit is killed alone: the group that counts lies between the victim and the
// limit that was reached.
void AddOomGroup(const HostFacts& facts, Report& report) {
  const Chain* chain = facts.cgroups.Find("memory");
  if (chain == nullptr || !chain->hierarchy.unified || chain->levels.empty()) return;
  Finding finding{"cgroup.oom-group", Verdict::kReady,
                  "no level from the own cgroup up is killed as a whole where memory runs out"};
  for (const Level& level : chain->levels) {
    if (Trim(level.File("memory.oom.group").text) != "1") continue;
    std::string file = level.FilePath("memory.oom.group");
    finding.verdict = Verdict::kNote;
    finding.reason = Text("where memory runs out in ", Printable(level.path),
                          " or above it, all of it is killed at once, what supervises the cells "
                          "too (a cell at its own limit is killed alone)");
    finding.who = WhoseIs(level, facts);
    finding.fix = Text(AsOwner(finding.who), "printf 0 >", ShellWord(file),
                       " (of a unit, to stay: OOMPolicy=continue)");
    finding.found.push_back({file, "1"});
  }
  report.findings.push_back(std::move(finding));
}

void AddLeftovers(const HostFacts& facts, Report& report) {
  const RunFacts& runs = facts.runs;
  if (runs.places.empty()) return;
  Finding finding{"cgroup.leftovers", Verdict::kReady, "no cgroup of an earlier cell is left"};
  if (!runs.running.empty()) finding.reason += Text("; ", runs.running.size(), " are in use");
  if (!runs.left.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text(runs.left.size(), " cgroups of cells hold no process, the first ",
                          Printable(runs.left.front()),
                          ": whoever made them was killed; the next cell's start removes them");
    finding.who = Who::kUser;
    finding.fix = "taskcell-launch -- true, or rmdir each of them, first 'cell' below it";
    for (std::size_t i = 0; i < std::min(kMostShown, runs.left.size()); ++i)
      finding.found.push_back({runs.left[i], "no process"});
  }
  report.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeCgroupState(const HostFacts& facts, Report& report) {
  AddRoom(facts, report);
  AddOomGroup(facts, report);
  AddLeftovers(facts, report);
}

}  // namespace taskcell::probe
