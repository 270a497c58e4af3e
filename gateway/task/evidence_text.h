#pragma once

#include <string>

#include "launcher/cgroup/events.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// What the cgroup of a cell counted, as a JSON object.
std::string EventsJson(const cgroup::Events& events);

// How a job ended, for a person: "exit 0", "signal 9", ...
std::string EndText(const gate::JobEnd& end);

}  // namespace taskcell::gateway
