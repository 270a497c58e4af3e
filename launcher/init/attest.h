#pragma once

#include <span>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/init/options.h"

namespace taskcell::init {

// What of a cell is read where: the file systems below are the cell's own.
inline constexpr std::size_t kMaxProcFileBytes = 256U << 10U;

// Reads everything of the inside half but the witness's findings and the listener's port: ids,
// mounts, limits, network, descriptors, names. `environment` is init's own. /proc must be the
// kernel's (checked), since all of this rests on it. What cannot be read is an Error; nothing is
// filled in with a guess.
Result<cell::InsideAttestation> Attest(const Options& options,
                                       std::span<const char* const> environment);

// The parts, each filling its own fields of `seen`.
Status AttestProcess(cell::InsideAttestation& seen);
Status AttestMounts(cell::InsideAttestation& seen);
Status AttestNetwork(cell::InsideAttestation& seen);
Status AttestDescriptors(cell::InsideAttestation& seen);

// Reads the limit files the launcher opened, or, where there are none, those of the cgroup file
// systems below `cgroup_root` (/sys/fs/cgroup in a cell), v2 or v1.
Result<cell::LimitsSeen> ReadLimits(std::span<const LimitDescriptor> descriptors,
                                    const std::string& cgroup_root);

}  // namespace taskcell::init
