#include <fcntl.h>
#include <unistd.h>

#include <span>
#include <string_view>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/init/cell_init.h"
#include "launcher/init/gate.h"
#include "launcher/init/options.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/output.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace taskcell::init {
namespace {

constexpr int kFailed = 125;

int Complain(const Error& error) {
  sys::PrintMessage("taskcell-init", error.text);
  return kFailed;
}

Status CheckPid() {
  int32_t pid = sys::OwnPid();
  if (pid == 1) return Ok();
  return Error(Kind::kUsage, Text("this is process ", pid,
                                  ", not process 1 of a cell. Whoever makes a cell starts ",
                                  "this program in it; run taskcell-launch instead."));
}

Status Run(std::span<const std::string_view> arguments, std::span<const char* const> environment) {
  TRY(CheckPid());
  Options options = TRY(ParseOptions(arguments));
  // A closed one would be taken by the next descriptor opened, which then would be the job's.
  TRY(sys::FillStandardStreams());
  TRY(sys::TakeSignals());
  return RunCell(options, environment);
}

std::span<const char* const> Environment() {
  std::size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  return {environ, count};
}

}  // namespace
}  // namespace taskcell::init

int main(int argc, char** argv) {
  // Before anything else: from here on no process of this uid can look into this one.
  taskcell::Status hidden = taskcell::sys::SetNotDumpable();
  if (!hidden.ok()) return taskcell::init::Complain(hidden.error());
  std::vector<std::string_view> arguments(argv + 1, argv + (argc > 0 ? argc : 1));
  taskcell::Status done = taskcell::init::Run(arguments, taskcell::init::Environment());
  if (done.ok()) return 0;
  // A gate that closed is how a refused or abandoned cell ends; whoever closed it knows why.
  if (taskcell::init::Gate::IsClosed(done.error())) return taskcell::init::kFailed;
  return taskcell::init::Complain(done.error());
}
