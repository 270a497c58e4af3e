#pragma once

#include <optional>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cgroup/situation.h"
#include "probe/engine/answers.h"
#include "probe/live/verdict.h"

namespace taskcell::live {

// Why limits of an engine's containers do not hold, and who must do what: what keeps the cgroups of
// `owner`, whose engine it is, from being limited, or what the engine leaves undone. The code is
// resource_limits_unenforced; nothing where every limit of a cgroup holds. Pure.
std::optional<Error> WhyUnenforced(const std::vector<Row>& rows, const probe::EngineInfo& engine,
                                   const cgroup::Situation& owner);

}  // namespace taskcell::live
