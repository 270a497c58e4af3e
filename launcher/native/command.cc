#include "launcher/native/command.h"

#include <cerrno>
#include <csignal>
#include <string>

#include "launcher/base/printable_message.h"
#include "launcher/base/text.h"
#include "launcher/cell/standard_stream.h"
#include "launcher/native/launch.h"
#include "launcher/native/message.h"
#include "launcher/native/report.h"
#include "launcher/sys/file.h"
#include "launcher/sys/landlock.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/self.h"
#include "launcher/sys/stream.h"
#include "launcher/sys/terminal.h"

namespace taskcell::native {
namespace {

// What to say about a program that did not start.
std::string RefusalText(const cell::Refusal& refusal, const std::string& program) {
  std::string text = Text("'", Printable(program), "': ", PrintableMessage(refusal.text));
  if (refusal.err == E2BIG) {
    text +=
        " (one argument or variable may have at most 131071 bytes, 128 KiB with its end mark, and "
        "all together a quarter of the stack limit: give long text by standard input or a file)";
  }
  return text;
}

// What the caller gave as standard stream `fd`.
Result<cell::DescriptorSeen> LookAtStream(int fd, const struct stat& status) {
  cell::DescriptorSeen stream;
  stream.fd = fd;
  stream.mode = status.st_mode;
  stream.device = status.st_rdev;
  stream.access = TRY(sys::AccessMode(fd));
  Result<sys::FileSystem> file_system = sys::FileSystemOf(fd);
  if (file_system.ok()) stream.filesystem = file_system->type;
  stream.terminal = S_ISCHR(status.st_mode) && sys::TerminalModes(fd).has_value();
  stream.receives = S_ISSOCK(status.st_mode) && sys::MayReceive(fd);
  return stream;
}

Status CheckStreams() {
  constexpr const char* kStreams[] = {"standard input", "standard output", "standard error"};
  const bool is_confined = sys::LandlockAbi() > 0;
  for (int fd = 0; fd <= 2; ++fd) {
    Result<struct stat> status = sys::Stat(fd);
    if (!status.ok()) continue;  // closed
    cell::DescriptorSeen stream = TRY(LookAtStream(fd, status.value()));
    std::string fault = cell::StreamFault(stream, is_confined);
    if (fault.empty()) continue;
    return Error(Kind::kUsage,
                 Text(kStreams[fd], " ", fault, ": give it a file, a pipe or /dev/null"));
  }
  return Ok();
}

// Before anything is opened here: a number the caller gave nothing for must not come to mean a
// descriptor of ours.
Status CheckDescriptors(const std::vector<FileOption>& files) {
  TRY(CheckStreams());
  for (const FileOption& file : files) {
    if (sys::AccessMode(file.fd).ok()) continue;
    return Error(Kind::kUsage, Text("--file '", Printable(file.target), "': descriptor ", file.fd,
                                    " is not open"));
  }
  return Ok();
}

std::string ReportIntent(const std::string& path) {
  return Text("--report '", Printable(path), "': ");
}

}  // namespace

int RefuseCommandLine(const Error& error, const std::string& report) {
  PrintMessage(error);
  if (report.empty()) return kExitFailed;
  Result<UniqueFd> opened = OpenReport(report);
  Status written = opened.ok() ? WriteReport(opened->get(), ReportError(error)) : opened.error();
  if (!written.ok()) PrintMessage(ReportIntent(report) + written.error().text);
  return kExitFailed;
}

int RunCommand(const Options& options) {
  if (options.dies_with_parent) {
    const int32_t parent = sys::ParentPid();
    Status set = sys::SetParentDeathSignal(SIGKILL);
    if (!set.ok()) {
      PrintMessage(set.error());
      return kExitFailed;
    }
    if (sys::ParentPid() != parent) return kExitFailed;  // it died meanwhile: nobody reads why
  }
  Status given = CheckDescriptors(options.files);
  if (!given.ok()) return RefuseCommandLine(given.error(), options.report);
  std::string report_option = ReportIntent(options.report);
  UniqueFd report;
  if (!options.report.empty()) {
    Result<UniqueFd> opened = OpenReport(options.report);
    if (!opened.ok()) {
      PrintMessage(report_option + opened.error().text);
      return kExitFailed;
    }
    report = std::move(opened).value();
  }
  Result<Finished> finished = RunInCell(options);
  std::string text;
  int status = kExitFailed;
  if (finished.ok()) {
    const Outcome& outcome = finished->outcome;
    if (outcome.refusal) PrintMessage(RefusalText(*outcome.refusal, options.command[0]));
    status = ExitStatus(outcome);
    text = ReportOutcome(finished->plan, finished->facts, outcome);
  } else {
    PrintMessage(finished.error());
    text = ReportError(finished.error());
  }
  if (!report.valid()) return status;
  Status written = WriteReport(report.get(), text);
  if (written.ok()) return status;
  PrintMessage(Text(report_option, written.error().text, "; the status without it is ", status));
  return kExitFailed;
}

}  // namespace taskcell::native
