#include "probe/facts/host_facts.h"

namespace taskcell::probe {

HostFacts ReadHostFacts(sys::FileTree& tree, const FactsRequest& request) {
  HostFacts facts;
  facts.cgroups = cgroup::ReadSituation(tree, request.subject);
  if (!request.user.empty()) facts.cgroups.around.user = request.user;
  facts.files = ReadFileFacts(tree);
  facts.subids = ReadSubidFacts(tree, request.subuid, request.subgid);
  return facts;
}

}  // namespace taskcell::probe
