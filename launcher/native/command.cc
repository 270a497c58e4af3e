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

std::string WithoutControls(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

// What to say about a program that did not start.
std::string RefusalText(const cell::Refusal& refusal, const std::string& program) {
  // What init quotes is printable already; nothing else of it may reach a terminal.
  std::string text = Text("'", Printable(program), "': ", WithoutControls(refusal.text));
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
  constexpr const char* kStreams[] = {"standard input", "standard output", "standard error"};
  for (int fd = 0; fd <= 2; ++fd) {
    Result<struct stat> info = sys::Stat(fd);
    if (info.ok() && S_ISDIR(info->st_mode)) {
      return Error(Kind::kUsage,
                   Text(kStreams[fd],
                        " is a directory, by which a cell would reach what is outside: "
                        "give it a file, a pipe or /dev/null"));
    }
  }
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
  Status given = CheckDescriptors(options.files);
  if (!given.ok()) {
    PrintMessage(given.error());
    return kExitFailed;
  }
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
