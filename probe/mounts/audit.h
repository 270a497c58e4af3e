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
  // Who, besides root, is to own everything; by default the caller, and for root, but with kBind,
  // the directory's own owner.
  std::optional<uid_t> owner = {};
  WalkOptions walk = {};
  // kStrict: every file is asked for all its extended attributes, as it is with kAgent anyway.
  bool all_attributes = false;
  // kAgent: what a cell's copy may hold, and what becomes of a directory with something unsafe in
  // it.
  mounts::SnapshotBounds snapshot_bounds = {};
  mounts::Subtree subtree = mounts::Subtree::kPrune;
  // Called with the path of everything that can be used as it is, on any thread: plain files with
  // kStrict, entries with kAgent, the directory itself with kBind. With nothing where something
  // worse than a note is found about the directory or the way to it.
  std::function<void(std::string_view path)> safe = {};
};

// Looks at one directory and says what is amiss. Changes nothing and follows no link below the
// directory. Opens nothing but directories and, with kAgent, the allowed entries that are plain
// files; of those SOUL.md and IDENTITY.md are read. An Error when the path leads nowhere, or the
// system fails.
Result<Report> Audit(const AuditRequest& request);

}  // namespace taskcell::probe::audit
