#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/mounts/snapshot.h"
#include "probe/mounts/report.h"
#include "probe/mounts/walk.h"

namespace taskcell::probe::audit {

struct AuditRequest {
  std::string directory;
  Policy policy = Policy::kStrict;
  // Who is to own everything; by default the caller, for root the directory's own owner.
  std::optional<uid_t> owner = {};
  WalkOptions walk = {};
  mounts::SnapshotBounds snapshot_bounds = {};  // what a cell's copy may hold
  // Called with the path of everything that can be used as it is, on any thread: plain files with
  // kStrict, entries with kAgent, the directory itself with kBind. With nothing where something
  // worse than a note is found about the directory or the way to it.
  std::function<void(std::string_view path)> safe = {};
};

// Looks at one directory and says what is amiss. Changes nothing, opens nothing but directories and
// the allowed entries of an agent directory, and follows no link below the directory. An Error when
// the path leads nowhere, or the system fails.
Result<Report> Audit(const AuditRequest& request);

}  // namespace taskcell::probe::audit
