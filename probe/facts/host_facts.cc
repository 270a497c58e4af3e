#include "probe/facts/host_facts.h"

namespace taskcell::probe {

HostFacts ReadHostFacts(sys::FileTree& tree, const FactsRequest& request) {
  HostFacts facts;
  facts.cgroups = cgroup::ReadSituation(tree, request.subject);
  if (!request.user.empty()) facts.cgroups.around.user = request.user;
  facts.files = ReadFileFacts(tree);
  facts.subids = ReadSubidFacts(tree, request.subuid, request.subgid);
  facts.systemd = ReadSystemdFacts(tree, facts.cgroups);
  facts.engines = ReadEngineFacts(tree, facts.cgroups.around.uid);
  facts.runs = ReadRunFacts(tree, facts.cgroups);
  return facts;
}

}  // namespace taskcell::probe
