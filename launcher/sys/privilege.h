#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::sys {

// What a process may do and be: its ids, capabilities and prctl(2) switches. All by raw system
// calls, for the calling thread.

// PR_SET_DUMPABLE 0: other processes of this uid can neither trace this one nor open its
// /proc/<pid>/{mem,fd,root,...}.
Status SetNotDumpable();

// PR_SET_NO_NEW_PRIVS 1.
Status SetNoNewPrivileges();
// PR_GET_NO_NEW_PRIVS: whether no program gives this process more than it has.
Result<bool> HasNoNewPrivileges();

// PR_SET_PDEATHSIG: `signal` is sent when the parent ends. A change of ids clears it.
Status SetParentDeathSignal(int signal);

// Locks SECBIT_NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE on and KEEP_CAPS off: ids never again
// decide about capabilities.
Status LockSecurebits();
// prctl(PR_GET_SECUREBITS).
Result<uint32_t> Securebits();

// Drops every capability from the bounding set, up to the last the kernel knows.
Status DropBoundingSet();

// Empties the ambient, inheritable, permitted and effective sets.
Status DropCapabilities();

// setgroups(2).
Status SetGroups(std::span<const gid_t> groups);

// getgroups(2).
Result<std::vector<gid_t>> GetGroups();

// setresgid(2), then setresuid(2), each with one value for all three; the file system ids follow.
Status SetIds(uid_t uid, gid_t gid);

// keyctl(KEYCTL_JOIN_SESSION_KEYRING) of a new one without a name: the keys of the session before
// cannot be reached any more. EDQUOT: the user has as many keys as it may (kernel.keys.maxkeys).
Status JoinNewSessionKeyring();

struct SessionKeyring {
  int32_t serial = 0;
  std::string description;  // "_ses" for one without a name, "_uid_ses.<uid>" for a user's
};
// The session keyring this process would use, and makes none (keyctl(2), GET_KEYRING_ID). ENOSYS: a
// kernel without keys.
Result<SessionKeyring> FindSessionKeyring();

// sethostname(2).
Status SetHostname(std::string_view name);

// Sets the interface "lo" of this network namespace up.
Status SetLoopbackUp();

}  // namespace taskcell::sys
