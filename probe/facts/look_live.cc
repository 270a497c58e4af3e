#include "probe/facts/look_live.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"
#include "probe/engine/endpoint.h"
#include "probe/facts/trials.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxProcesses = 65536;
constexpr std::size_t kMaxStatusBytes = 16U << 10U;

std::string EnvironmentValue(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

TrialGround GroundOf(const HostFacts& facts) {
  TrialGround ground;
  for (const cgroup::Chain& chain : facts.cgroups.chains) {
    if (chain.hierarchy.unified && !chain.levels.empty())
      ground.cgroup_directory = chain.levels.back().path;
  }
  ground.home = EnvironmentValue("HOME");
  ground.filesystems = facts.files.File("/proc/filesystems").text;
  return ground;
}

void AddSpace(const std::string& path, LiveFacts& live) {
  Result<UniqueFd> directory = sys::Open(path, O_PATH | O_DIRECTORY);
  if (!directory.ok()) return;
  Result<sys::FileSystem> system = sys::FileSystemOf(directory->get());
  if (system.ok()) live.spaces.push_back({path, system->size_bytes, system->free_bytes});
}

void AddAccess(const std::string& socket, LiveFacts& live) {
  for (const SocketAccess& each : live.sockets) {
    if (each.path == socket) return;
  }
  Status access = sys::CheckAccess(AT_FDCWD, socket, R_OK | W_OK);
  live.sockets.push_back({socket, access.ok() ? 0 : access.error().err});
}

void ChooseEngine(LiveFacts& live) {
  Result<Endpoint> endpoint = ChooseEndpoint(SettingsFromEnvironment(""));
  if (!endpoint.ok()) {
    live.engine_error = endpoint.error().text;
    return;
  }
  live.engine_socket = endpoint->socket_path;
  live.engine_source = endpoint->source;
  for (const std::string& loser : endpoint->losers)
    live.engine_source += Text("; ", loser, " and not used");
}

// RLIMIT_NPROC counts the threads of a real uid on the whole host.
uint64_t CountTasks(sys::FileTree& host, uint32_t uid) {
  uint64_t tasks = 0;
  auto entries = host.List("/proc", kMaxProcesses);
  if (!entries.ok()) return 0;
  for (const sys::DirectoryEntry& entry : entries.value()) {
    if (!ParseUnsigned(entry.name)) continue;
    std::string process = "/proc/" + entry.name;
    sys::FileSeen seen = host.Look(process);
    if (!seen.present() || seen.uid != uid) continue;
    std::string status = host.Read(process + "/status", kMaxStatusBytes).text;
    tasks += ParseUnsigned(FieldOf(status, "Threads")).value_or(0);
  }
  return tasks;
}

}  // namespace

LiveFacts LookLive(sys::FileTree& host, const HostFacts& facts) {
  LiveFacts live;
  live.trials = TryFeatures(GroundOf(facts));
  for (const EngineFacts::Socket& socket : facts.engines.sockets) AddAccess(socket.path, live);
  ChooseEngine(live);
  if (!live.engine_socket.empty()) AddAccess(live.engine_socket, live);
  std::string home = EnvironmentValue("HOME");
  if (!home.empty()) AddSpace(home, live);
  live.runtime_directory = EnvironmentValue("XDG_RUNTIME_DIR");
  live.unix_time_s = std::time(nullptr);
  live.max_tasks =
      sys::ResourceLimit(RLIMIT_NPROC).ok() ? sys::ResourceLimit(RLIMIT_NPROC).value() : 0;
  // Root is not bound by it.
  if (facts.cgroups.around.uid != 0) live.own_tasks = CountTasks(host, facts.cgroups.around.uid);
  return live;
}

}  // namespace taskcell::probe
