#include "probe/facts/subid_facts.h"

#include "launcher/base/text.h"
#include "launcher/native/subordinate_ids.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxAccountsBytes = 4U << 20U;

SubidFacts::Program FindProgram(sys::FileTree& tree, std::string_view name) {
  SubidFacts::Program program;
  for (const char* directory : {"/usr/bin/", "/bin/", "/usr/local/bin/", "/run/wrappers/bin/"}) {
    std::string path = Text(directory, name);
    sys::FileSeen seen = tree.Look(path);
    if (!seen.present()) continue;
    program.path = path;
    program.file = std::move(seen);
    program.has_capabilities = tree.ReadAttribute(path, "security.capability").ok();
    break;
  }
  return program;
}

sys::FileSeen ReadList(sys::FileTree& tree, const std::string& path, const std::string& instead) {
  if (instead.empty()) return tree.Read(path, native::kMaxSubordinateFileBytes);
  Result<sys::RootedTree> host = sys::RootedTree::OpenHost();
  if (!host.ok()) return {};
  return host->Read(instead, native::kMaxSubordinateFileBytes);
}

}  // namespace

SubidFacts ReadSubidFacts(sys::FileTree& tree, const std::string& subuid,
                          const std::string& subgid) {
  SubidFacts facts;
  facts.subuid = ReadList(tree, facts.subuid_path, subuid);
  facts.subgid = ReadList(tree, facts.subgid_path, subgid);
  if (!subuid.empty()) facts.subuid_path = subuid;
  if (!subgid.empty()) facts.subgid_path = subgid;
  facts.passwd = tree.Read("/etc/passwd", kMaxAccountsBytes);
  facts.group = tree.Read("/etc/group", kMaxAccountsBytes);
  facts.login_defs = tree.Read("/etc/login.defs", kMaxAccountsBytes);
  facts.newuidmap = FindProgram(tree, "newuidmap");
  facts.newgidmap = FindProgram(tree, "newgidmap");
  return facts;
}

}  // namespace taskcell::probe
