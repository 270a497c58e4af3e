#pragma once

#include "launcher/sys/file_tree.h"
#include "probe/facts/host_facts.h"

namespace taskcell::probe {

// Looks at what stands in no file of this host: tries features, asks for access, reads clocks and
// limits. `facts` are the host's, read before. Changes nothing: no socket is connected to, since
// that can start a service.
LiveFacts LookLive(sys::FileTree& host, const HostFacts& facts);

}  // namespace taskcell::probe
