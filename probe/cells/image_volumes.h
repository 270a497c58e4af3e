#pragma once

#include <vector>

#include "probe/cells/cell_engine.h"

namespace taskcell::probe {

// Size of the tmpfs that covers an image's VOLUME: one page, and nobody can write to it.
inline constexpr uint64_t kCoverBytes = 4096;
inline constexpr std::size_t kMaxImageVolumes = 64;

// Returns what must be planned for the image's VOLUMEs: an empty read-only tmpfs on each that is
// not planned already, so that no writable disk comes with an image. Error code container_refused
// for a volume that can't be covered: "/", one at or below /proc, /sys or /dev, one that is no
// absolute path, more than kMaxImageVolumes. Pure.
Result<std::vector<cell::PlannedTmpfs>> CoverVolumes(const ImageFacts& image,
                                                     const cell::CellPlan& plan);

}  // namespace taskcell::probe
