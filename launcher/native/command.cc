#include "launcher/native/command.h"

#include <cerrno>
#include <string>

#include "launcher/base/text.h"
#include "launcher/native/launch.h"
#include "launcher/native/message.h"
#include "launcher/native/report.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::native {
namespace {

// What to say about a program that did not start.
std::string RefusalText(const cell::Refusal& refusal, const std::string& program) {
  std::string text = Text("'", Printable(program), "': ", Printable(refusal.text));
  if (refusal.err == E2BIG) {
    text +=
        " (one argument or variable may have at most 131071 bytes, 128 KiB with its end mark, and "
        "all together a quarter of the stack limit: give long text by standard input or a file)";
  }
  return text;
}

// Before anything is opened here: a number the caller gave nothing for must not come to mean a
// descriptor of ours.
Status CheckDescriptors(const std::vector<FileOption>& files) {
  for (const FileOption& file : files) {
    if (sys::AccessMode(file.fd).ok()) continue;
    return Error(Kind::kUsage, Text("--file '", Printable(file.target), "': descriptor ", file.fd,
                                    " is not open"));
  }
  return Ok();
}

}  // namespace

int RunCommand(const Options& options) {
  Status given = CheckDescriptors(options.files);
  if (!given.ok()) {
    PrintMessage(given.error());
    return kExitFailed;
  }
  std::string report_option = Text("--report '", Printable(options.report), "': ");
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
  Status written = sys::WriteAll(report.get(), text);
  if (written.ok()) return status;
  PrintMessage(Text(report_option, written.error().text, "; the status without it is ", status));
  return kExitFailed;
}

}  // namespace taskcell::native
