// taskcell-breaker: runs in a probe's cell, tries to go past each limit it is told, and prints one
// line for each. taskcell-probe starts it; alone it would only strain the host.
#include <unistd.h>

#include <string>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/output.h"
#include "launcher/sys/self.h"
#include "probe/live/breaker/break.h"

namespace taskcell::live {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(const Error& error, int status) {
  sys::PrintMessage("taskcell-breaker", error.text);
  return status;
}

// Outside of a cell a payload could exhaust its user's processes or the host's memory.
Status CheckInCell() {
  Result<std::string> name = sys::HostName();
  if (name.ok() && name.value() == kProbeHostname) return Ok();
  return Error(Kind::kUsage,
               "this program breaks limits and runs in a cell only: run taskcell-probe live");
}

int Main(int argc, char** argv) {
  Status in_cell = CheckInCell();
  if (!in_cell.ok()) return Complain(in_cell.error(), kUsage);
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    Result<Attempt> attempt = ParseAttempt(argv[i]);
    if (!attempt.ok()) return Complain(attempt.error(), kUsage);
    Result<Finding> finding = Break(attempt.value());
    if (!finding.ok()) {
      status = Complain(finding.error(), kFailed);
      continue;
    }
    Status written = sys::WriteAll(STDOUT_FILENO, Line(finding.value()) + "\n");
    if (!written.ok()) return Complain(written.error(), kFailed);
  }
  return status;
}

}  // namespace
}  // namespace taskcell::live

int main(int argc, char** argv) { return taskcell::live::Main(argc, argv); }
