#pragma once

#include <optional>
#include <string>

#include "launcher/cgroup/situation.h"
#include "probe/facts/engine_facts.h"
#include "probe/facts/file_facts.h"
#include "probe/facts/live_facts.h"
#include "probe/facts/run_facts.h"
#include "probe/facts/subid_facts.h"
#include "probe/facts/systemd_facts.h"

namespace taskcell::probe {

// What a host is, as far as the rules ask.
struct HostFacts {
  cgroup::Situation cgroups;
  FileFacts files;
  SubidFacts subids;
  SystemdFacts systemd;
  EngineFacts engines;
  RunFacts runs;
  std::optional<LiveFacts> live;  // only of the running host, or collected there
};

// What is asked about, and where else to look.
struct FactsRequest {
  cgroup::Subject subject;
  std::string user;    // the login name, where the accounts do not tell it
  std::string subuid;  // in place of /etc/subuid
  std::string subgid;
};

// Reads all that stands in files. Bounded, and without an effect on the host.
HostFacts ReadHostFacts(sys::FileTree& tree, const FactsRequest& request);

}  // namespace taskcell::probe
