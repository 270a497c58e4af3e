#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/native/check.h"
#include "launcher/native/command.h"
#include "launcher/native/gateway_mode.h"
#include "launcher/native/options.h"
#include "launcher/native/supervisor.h"
#include "launcher/sys/output.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace {

using taskcell::native::Options;

int Show(std::string_view text) {
  return taskcell::sys::PrintOutput("taskcell-launch", text) ? 0 : 1;
}

int Run(const Options& options) {
  switch (options.mode) {
    case Options::Mode::kHelp:
      return Show(taskcell::native::kUsage);
    case Options::Mode::kVersion:
      return Show("taskcell-launch " TASKCELL_VERSION "\n");
    case Options::Mode::kGateway:
      return taskcell::native::RunForGateway(options);
    case Options::Mode::kSnapshot:
      return taskcell::native::SnapshotForGateway(options.snapshot_fd);
    case Options::Mode::kFiles:
      return taskcell::native::ReadForGateway(options.files_fd);
    case Options::Mode::kCheck:
      return taskcell::native::RunCheck(options);
    case Options::Mode::kRun:
      break;
  }
  return taskcell::native::RunCommand(options);
}

}  // namespace

int main(int argc, char** argv) {
  // Before anything else is opened: a descriptor of ours must never become 0, 1 or 2.
  taskcell::Status streams = taskcell::sys::FillStandardStreams();
  if (!streams.ok()) return taskcell::native::kExitFailed;
  // Dispositions the caller left: its ignored SIGCHLD would lose the program's status, SIGPIPE and
  // SIGXFSZ would end us with a status that reads as the program's. init sets all of them back to
  // their defaults for the job.
  (void)std::signal(SIGCHLD, SIG_DFL);  // ignoring: cannot fail for these
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  // Descriptors of ours, up to what nobody here could raise.
  (void)taskcell::sys::RaiseResourceLimit(RLIMIT_NOFILE);  // ignoring: then the soft one holds
  // What we make is ours to enter and to remove, whatever the caller masks.
  constexpr mode_t kOthers = 077;
  (void)::umask(::umask(0) & kOthers);
  taskcell::Result<Options> options = taskcell::native::ParseOptions(argc, argv);
  if (!options.ok()) {
    return taskcell::native::RefuseCommandLine(options.error(),
                                               taskcell::native::FindReportOption(argc, argv));
  }
  return Run(options.value());
}
