#include "probe/live/native_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "probe/cells/native_engine.h"
#include "probe/cells/program.h"

namespace taskcell::live {
namespace {

struct Prepared {
  Setting setting;
  UniqueFd pin;  // on taskcell-breaker
};

Result<Prepared> Prepare() {
  Prepared made;
  bool is_root = ::geteuid() == 0 || ::getegid() == 0;
  made.setting.uid = made.setting.gid = is_root ? kNobody : kInsideId;
  made.setting.places.launch_program = TRY(probe::FindProgram("taskcell-launch"));
  cell::PlannedMount mount;
  mount.source = TRY(probe::FindProgram("taskcell-breaker"));
  mount.target = kBreakerInside;
  made.pin = TRY(sys::Open(mount.source, O_PATH));
  struct stat info = TRY(sys::Stat(made.pin.get()));
  mount.device = info.st_dev;
  mount.inode = info.st_ino;
  made.setting.mounts.push_back(std::move(mount));
  return made;
}

}  // namespace

Report ProbeNative(const Asked& asked, const std::function<bool()>& stopped) {
  probe::NativeEngine engine;
  Result<Prepared> prepared = Prepare();
  if (prepared.ok()) return BreakLimits(engine, prepared->setting, asked, stopped);
  Report report;
  report.engine = engine.Name();
  report.refusal = std::move(prepared).error();
  return report;
}

}  // namespace taskcell::live
