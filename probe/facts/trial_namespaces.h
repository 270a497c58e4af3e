#pragma once

#include <string>
#include <utility>

#include "launcher/base/error.h"
#include "probe/facts/trials.h"

namespace taskcell::probe {

struct Tried {
  Outcome outcome = Outcome::kUnknown;
  int err = 0;
  std::string detail;
};

inline Tried Works(std::string detail = {}) { return {Outcome::kWorks, 0, std::move(detail)}; }
inline Tried Untried(std::string why) { return {Outcome::kUnknown, 0, std::move(why)}; }
// ENOSYS and the like mean that the kernel, or a filter in its place, has no such feature.
Tried Failed(int err, std::string step);
Tried Failed(const Error& error);

// What is tried in new namespaces. TryUserNamespace puts the calling process into a user and a
// mount namespace for good; the others need that.
Tried TryUserNamespace(const TrialGround& ground);
Tried TryMountApi(const TrialGround& ground);
Tried TryTmpfs(const TrialGround& ground);
Tried TryMountAttributes(const TrialGround& ground);
Tried TryOverlay(const TrialGround& ground);
Tried TryProc(const TrialGround& ground);
Tried TryProcSubset(const TrialGround& ground);

// Makes user namespaces in each other until the kernel refuses: for good, so in a child of its own.
Tried TryUserNamespaceDepth(const TrialGround& ground);

// In the host's namespaces, as root alone: on the home directory, which decides, and on each other
// type of file system that cells use.
Tried TryIdMapped(const TrialGround& ground);

}  // namespace taskcell::probe
