#include "probe/cells/native_engine.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/native/free_ids.h"
#include "launcher/sys/file.h"
#include "probe/cells/cell_ids.h"
#include "probe/cells/native_cell.h"

namespace taskcell::probe {
namespace {

constexpr uint32_t kInsideId = 1000;

// newuidmap and newgidmap are looked for where Debian and its kin install them, never in PATH.
bool HasMapHelpers() {
  return sys::Open("/usr/bin/newuidmap", O_PATH).ok() &&
         sys::Open("/usr/bin/newgidmap", O_PATH).ok();
}

}  // namespace

Result<ImageFacts> NativeEngine::CheckImage(const std::string& image) {
  return Error(Kind::kConfig, Text("engine \"native\" has no images, so not '", Printable(image),
                                   "'; set [taskcell] root to \"host\" or a directory"))
      .Coded("image_missing");
}

Result<CellIds> NativeEngine::ChooseIds(const std::string& /*run_id*/) {
  TRY(RefuseRootIds(::geteuid(), ::getegid()));
  native::SubordinateIds subordinate =
      TRY(native::ReadFreeSubordinateIds(::geteuid(), ::getegid())).ids;
  CellIds ids{kInsideId, kInsideId, false, Text("the gateway's own uid ", ::geteuid())};
  ids.separate = !subordinate.uids.empty() && !subordinate.gids.empty() && HasMapHelpers();
  if (ids.separate) ids.how = "a subordinate uid through newuidmap";
  return ids;
}

Result<std::unique_ptr<RunningCell>> NativeEngine::Make(cell::CellPlan plan,
                                                        const CellPlaces& places) {
  TRY(RefuseRootIds(plan.uid, plan.gid));
  return NativeCell::Make(std::move(plan), places, cancel_fd_);
}

}  // namespace taskcell::probe
