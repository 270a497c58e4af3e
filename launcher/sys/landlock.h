#pragma once

#include <cstdint>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Landlock (landlock(7)), asked for by trying and never by the kernel's version. The constants of
// newer ABIs than the build machine's headers know are given here.
inline constexpr uint64_t kFsExecute = 1U << 0U;
inline constexpr uint64_t kFsWriteFile = 1U << 1U;
inline constexpr uint64_t kFsReadFile = 1U << 2U;
inline constexpr uint64_t kFsReadDirectory = 1U << 3U;
inline constexpr uint64_t kFsTruncate = 1U << 14U;        // ABI 3
inline constexpr uint64_t kFsIoctlDevice = 1U << 15U;     // ABI 5
inline constexpr uint64_t kNetConnectTcp = 1U << 1U;      // ABI 4
inline constexpr uint64_t kScopeAbstractUnix = 1U << 0U;  // ABI 6
inline constexpr uint64_t kScopeSignal = 1U << 1U;        // ABI 6

// The ABI the kernel has; 0 where Landlock is not built in, turned off at boot or hidden by a
// filter (ENOSYS, EOPNOTSUPP, EPERM of a filter).
int LandlockAbi();

// Every file system right that `abi` knows: what a ruleset handles, so that what is not granted is
// denied.
uint64_t LandlockFileRights(int abi);

struct LandlockScope {
  uint64_t files = 0;
  uint64_t net = 0;
  uint64_t scoped = 0;
};
// landlock_create_ruleset(2) for what `handled` names; fields `abi` does not know are left out.
Result<UniqueFd> MakeLandlockRuleset(int abi, const LandlockScope& handled);

// Grants `rights` on the file `fd` (O_PATH) and, for a directory, on everything below it.
Status GrantBeneath(int ruleset, int fd, uint64_t rights);

// Grants `rights` on the TCP port.
Status GrantPort(int ruleset, uint16_t port, uint64_t rights);

// landlock_restrict_self(2): for good, for this thread and what it starts. Needs no_new_privs.
Status RestrictSelf(int ruleset);

}  // namespace taskcell::sys
