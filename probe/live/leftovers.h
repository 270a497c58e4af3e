#pragma once

#include "probe/engine/client.h"

namespace taskcell::live {

// What marks the containers of probes: in place of a home's label.
inline constexpr char kProbeHomeLabel[] = "00000000000000000000000000000000";
// The label of a probe's image: "1", or "kept" for one that is to stay.
inline constexpr char kProbeImageLabel[] = "com.duduclaw.task-sandbox.probe";

// When a container may be taken for abandoned, after its job's deadline; an image after a longer
// time, since containers are made of it.
inline constexpr int64_t kAbandonedAfterMs = 60'000;
inline constexpr int64_t kStaleImageSeconds = 300;

// Removes what probes left that were killed: containers that were made but not started yet (all
// others remove themselves) and are past their deadline, and images older than kStaleImageSeconds.
// Never fails: what can't be removed stays for another time. `now_unix_s` is the time.
void RemoveLeftovers(probe::EngineClient& client, int64_t now_unix_s);

}  // namespace taskcell::live
