#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/init/options.h"

namespace taskcell::init {

// What of a cell is read where: the file systems below are the cell's own.
inline constexpr std::size_t kMaxProcFileBytes = 256U << 10U;

// Together they read everything of the inside half but the witness's findings and the listener's
// port. /proc must be the kernel's (checked first), since all of this rests on it. What cannot be
// read is an Error; nothing is filled in with a guess.

// What has to be looked at before init opens or starts anything, and what a witness is made from:
// the numbers of the descriptors, and mountinfo.
struct AloneSeen {
  std::vector<int> descriptors;
  std::string mountinfo;
};
Result<AloneSeen> AttestAlone();
// The sockets init knows of in the cell's network namespace: inodes (0: none) and the path the
// gate's peer is bound to (empty: a gate made elsewhere).
struct OwnSockets {
  uint64_t gate = 0;
  uint64_t listener = 0;
  uint64_t tunnel_listener = 0;
  std::string gate_peer;
};
// Sockets that are not `own` and ipc objects: to be looked for before there is a witness, which
// makes some for trial, where somebody else than the launcher made the namespaces.
Status AttestSharing(const OwnSockets& own, cell::InsideAttestation& seen);
// The rest but for devices: processes but `witness`, the descriptors that were there `alone`,
// namespaces, ids, mounts, limits, network, names. `environment` is init's own.
Status AttestRest(const Options& options, std::span<const char* const> environment, AloneSeen alone,
                  pid_t witness, cell::InsideAttestation& seen);

// The namespaces, each as far as it can be looked at.
void AttestNamespaces(cell::InsideAttestation& seen);

// Looks at each mount point of `seen.mountinfo`; a device mounted below /dev is one of the devices.
Status AttestMounts(cell::InsideAttestation& seen);
// Adds what is at `path` where it is a device.
void AddDevice(const std::string& path, const struct stat& info, cell::InsideAttestation& seen);
// Looks for devices in and below /dev.
Status AttestDevices(cell::InsideAttestation& seen);

// Every process of the cell but this one and `except` (0: no other).
Result<std::vector<cell::ProcessSeen>> OtherProcesses(pid_t except);

// Reads the limit files the launcher opened, or, where there are none, those of the cgroup file
// systems below `cgroup_root` (/sys/fs/cgroup in a cell), v2 or v1.
Result<cell::LimitsSeen> ReadLimits(std::span<const LimitDescriptor> descriptors,
                                    const std::string& cgroup_root);

}  // namespace taskcell::init
