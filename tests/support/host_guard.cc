#include "tests/support/host_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPause{50};

std::vector<std::string> EntriesOf(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;  // it is not there, or went away meanwhile
  for (fs::directory_iterator at(directory, ignored), end; at != end && !ignored;
       at.increment(ignored))
    names.push_back(at->path().filename());
  return names;
}

// The words after "Name:" in a /proc/PID/status.
std::vector<std::string_view> StatusWords(std::string_view status, std::string_view name) {
  for (std::string_view line : Split(status, '\n')) {
    if (line.starts_with(name) && line.substr(name.size(), 1) == ":")
      return Words(line.substr(name.size() + 1));
  }
  return {};
}

// The ids cells of the tests run with on the host: the test user's own, its subordinate ones, and
// those of cells that root makes.
class CellIds {
 public:
  CellIds() {
    std::optional<User> user = TestUser();
    if (!user.has_value()) return;
    Add(user->uid, 1);
    for (std::string_view line : Split(text_, '\n')) {
      std::vector<std::string_view> parts = Split(line, ':');
      if (parts.size() == 3 && parts[0] == user->name)
        Add(ParseUnsigned(parts[1]).value_or(0), ParseUnsigned(parts[2]).value_or(0));
    }
  }
  bool Has(uint64_t id) const {
    constexpr uint64_t kNobody = 65534;
    constexpr uint64_t kOfInitTests = 65533;
    return id == kNobody || id == kOfInitTests ||
           std::any_of(ranges_.begin(), ranges_.end(), [id](const auto& range) {
             return id >= range.first && id - range.first < range.second;
           });
  }

 private:
  void Add(uint64_t first, uint64_t count) { ranges_.emplace_back(first, count); }

  std::string text_ = ReadText("/etc/subuid");
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

bool IsOurProgram(const std::string& pid, std::string_view name) {
  if (name == "containerd-shim")
    return ReadText("/proc/" + pid + "/cmdline").find("/run/taskcell-test/") != std::string::npos;
  // The kernel keeps the first 15 bytes of a name.
  return name == "taskcell" || name == "taskcell-launch" || name == "taskcell-init" ||
         name == "taskcell-gatewa";
}

bool IsUnitTest(std::string_view pid) {
  return ReadText(Text("/proc/", pid, "/comm")).starts_with("unit_");
}

void AddProcesses(std::vector<std::string>& traces) {
  const CellIds ids;
  for (const std::string& pid : EntriesOf("/proc")) {
    if (!ParseUnsigned(pid).has_value()) continue;
    std::string status = ReadText("/proc/" + pid + "/status");
    std::vector<std::string_view> name = StatusWords(status, "Name");
    std::vector<std::string_view> uid = StatusWords(status, "Uid");
    if (name.empty() || uid.empty()) continue;  // it has just ended
    bool nested = StatusWords(status, "NSpid").size() > 1;
    // A unit test, which may run at the same time, starts programs too and waits for them.
    std::vector<std::string_view> parent = StatusWords(status, "PPid");
    if (!parent.empty() && IsUnitTest(parent[0])) continue;
    bool of_a_cell = nested && ids.Has(ParseUnsigned(uid[0]).value_or(0));
    if (of_a_cell || IsOurProgram(pid, name[0]))
      traces.push_back(Text("process ", pid, " (", name[0], ")"));
  }
}

// The private engine's own mounts, made when it first needs them (those of its containers go with
// them), and systemd's, of a service that one of its timers starts.
bool IsOfSomebodyElse(std::string_view mount_point) {
  return mount_point == "/var/lib/taskcell-test/docker" ||
         mount_point == "/run/taskcell-test/docker-exec/netns/default" ||
         mount_point.starts_with("/run/credentials/");
}

void AddMounts(std::vector<std::string>& traces) {
  const std::string mounts = ReadText("/proc/self/mountinfo");
  for (std::string_view line : Split(mounts, '\n')) {
    constexpr std::size_t kMountPoint = 4;
    std::vector<std::string_view> words = Words(line);
    if (words.size() > kMountPoint && !IsOfSomebodyElse(words[kMountPoint]))
      traces.push_back(Text("mount ", line));
  }
}

// Of native cells: run-* below any delegated place, on v2 and below each hierarchy of v1.
void AddNativeCgroups(const fs::path& hierarchy, std::vector<std::string>& paths) {
  for (const std::string& place : EntriesOf(hierarchy / "taskcell")) {
    for (const std::string& name : EntriesOf(hierarchy / "taskcell" / place)) {
      if (name.starts_with("run-")) paths.push_back(hierarchy / "taskcell" / place / name);
    }
  }
}

std::vector<fs::path> Hierarchies() {
  std::vector<fs::path> found = {"/sys/fs/cgroup"};
  for (const std::string& name : EntriesOf("/sys/fs/cgroup")) {
    if (fs::path path = found[0] / name; fs::is_directory(path)) found.push_back(path);
  }
  return found;
}

void AddCgroups(std::vector<std::string>& traces) {
  for (const std::string& path : CellCgroups()) traces.push_back("cgroup " + path);
  for (const fs::path& hierarchy : Hierarchies()) {
    constexpr std::size_t kIdLength = 64;
    for (const std::string& name : EntriesOf(hierarchy / "docker")) {
      if (name.size() == kIdLength)
        traces.push_back(Text("cgroup ", (hierarchy / "docker" / name).string()));
    }
  }
}

// The values of `key` in an answer of the engine: names and ids, which hold nothing to unescape.
void AddValues(const std::string& socket, const std::string& target, std::string_view key,
               std::string_view kind, std::vector<std::string>& traces) {
  std::string answer = ForwardToEngine(socket, {"GET", target, ""});
  std::string mark = Text("\"", key, "\":\"");
  for (std::size_t at = answer.find(mark); at != answer.npos; at = answer.find(mark, at)) {
    at += mark.size();
    traces.push_back(Text(kind, " ", answer.substr(at, answer.find('"', at) - at)));
  }
}

void AddEngineObjects(std::vector<std::string>& traces) {
  std::string socket = DockerSocket();
  if (socket.empty()) return;
  AddValues(socket, "/containers/json?all=1", "Id", "container", traces);
  AddValues(socket, "/volumes", "Name", "volume", traces);
  AddValues(socket, "/images/json?all=1", "Id", "image", traces);
}

// The launcher's copies of agent directories.
void AddDirectories(std::vector<std::string>& traces) {
  for (const std::string& name : EntriesOf("/tmp")) {
    if (name.starts_with("taskcell-agent-")) traces.push_back("directory /tmp/" + name);
  }
}

void AddMissing(const std::vector<std::string>& of, const std::vector<std::string>& in,
                std::string_view how, std::vector<std::string>& changes) {
  std::vector<std::string> missing;
  std::set_difference(of.begin(), of.end(), in.begin(), in.end(), std::back_inserter(missing));
  for (const std::string& trace : missing) {
    if (how != "lost: " || trace.starts_with("mount ")) changes.push_back(Text(how, trace));
  }
}

std::vector<std::string> Changes(const std::vector<std::string>& before,
                                 const std::vector<std::string>& now) {
  std::vector<std::string> changes;
  AddMissing(now, before, "left: ", changes);
  AddMissing(before, now, "lost: ", changes);
  return changes;
}

std::vector<std::string> Common(const std::vector<std::string>& first,
                                const std::vector<std::string>& second) {
  std::vector<std::string> common;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                        std::back_inserter(common));
  return common;
}

// Compares the host before and after each test of the program this file is linked into: nothing of
// a cell may be left, whichever fixture made it.
class HostGuard : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& /*test*/) override { before_ = CellTraces(); }
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    for (const std::string& change : ChangesSince(before_)) ADD_FAILURE() << change;
  }

 private:
  std::vector<std::string> before_;
};

[[maybe_unused]] const bool kGuarded = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new HostGuard);  // NOLINT: gtest owns it
  return true;
}();

}  // namespace

std::vector<std::string> CellCgroups() {
  std::vector<std::string> paths;
  for (const fs::path& hierarchy : Hierarchies()) AddNativeCgroups(hierarchy, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> CellTraces() {
  std::vector<std::string> traces;
  AddProcesses(traces);
  AddMounts(traces);
  AddCgroups(traces);
  AddEngineObjects(traces);
  AddDirectories(traces);
  std::sort(traces.begin(), traces.end());
  return traces;
}

std::vector<std::string> ChangesSince(const std::vector<std::string>& before,
                                      std::chrono::milliseconds patience) {
  auto end = std::chrono::steady_clock::now() + patience;
  std::vector<std::string> changes = Changes(before, CellTraces());
  while (!changes.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    changes = Common(changes, Changes(before, CellTraces()));
  }
  return changes;
}

}  // namespace taskcell::test
