#include "probe/facts/systemd_facts.h"

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxLibraries = 512;
constexpr std::size_t kMaxControlBytes = 4096;

// systemd's own library carries the version in its name.
std::string VersionOf(sys::FileTree& tree) {
  constexpr std::string_view kName = "libsystemd-shared-";
  for (const char* directory : {"/usr/lib/systemd", "/usr/lib/x86_64-linux-gnu/systemd",
                                "/usr/lib/aarch64-linux-gnu/systemd"}) {
    auto entries = tree.List(directory, kMaxLibraries);
    if (!entries.ok()) continue;
    for (const sys::DirectoryEntry& entry : entries.value()) {
      std::string_view name = entry.name;
      if (!name.starts_with(kName)) continue;
      name.remove_prefix(kName.size());
      return std::string(name.substr(0, name.find_first_not_of("0123456789")));
    }
  }
  return {};
}

const cgroup::Chain* Unified(const cgroup::Situation& situation) {
  for (const cgroup::Chain& chain : situation.chains) {
    if (chain.hierarchy.unified && !chain.hierarchy.mount_point.empty()) return &chain;
  }
  return nullptr;
}

// The last service of a path that is not the user's own manager or below it.
std::string OwnService(std::string_view path) {
  std::string name;
  for (std::string_view part : Split(path, '/')) {
    if (part.starts_with("user@")) return {};
    if (part.ends_with(".service")) name = part;
  }
  return name;
}

}  // namespace

SystemdFacts ReadSystemdFacts(sys::FileTree& tree, const cgroup::Situation& situation) {
  SystemdFacts facts;
  const cgroup::Surroundings& around = situation.around;
  if (!around.systemd) return facts;
  facts.version = VersionOf(tree);
  std::string manager = Text("user@", around.uid, ".service");
  facts.user_manager = ReadUnit(tree, manager);
  facts.lingers =
      !around.user.empty() && tree.Look("/var/lib/systemd/linger/" + around.user).present();
  const cgroup::Chain* unified = Unified(situation);
  if (unified == nullptr) {  // of v1's own hierarchy nothing is read: its bus tells that it runs
    facts.user_manager_runs = around.user_bus;
    return facts;
  }
  std::string path =
      Text(unified->hierarchy.mount_point, "/user.slice/user-", around.uid, ".slice/", manager);
  facts.user_manager_runs = tree.Look(path).present();
  facts.delegated_path = path + "/cgroup.controllers";
  facts.delegated = Trim(tree.Read(facts.delegated_path, kMaxControlBytes).text);
  std::string own = OwnService(unified->hierarchy.own_path);
  if (!own.empty()) facts.own = ReadUnit(tree, own);
  return facts;
}

}  // namespace taskcell::probe
