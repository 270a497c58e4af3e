#pragma once

#include <string>

#include "launcher/base/result.h"
#include "launcher/mounts/scratch_directory.h"
#include "probe/cells/docker_engine.h"
#include "probe/live/live.h"
#include "probe/live/probe_image.h"

namespace taskcell::live {

// What a probe's containers are made of and where they are made; both go with the object.
struct EngineSetting {
  Setting setting;
  mounts::ScratchDirectory scratch;
  ProbeImage image;
};

// Checks that the engine at `endpoint` answers, removes what killed probes left there, chooses the
// ids, and makes an image of the static program at `program` (inside: kBreakerInside).
Result<EngineSetting> PrepareEngine(probe::DockerEngine& engine, const probe::Endpoint& endpoint,
                                    const std::string& program, bool keep_image);

}  // namespace taskcell::live
