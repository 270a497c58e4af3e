#include "launcher/sys/output.h"

#include <unistd.h>

#include <csignal>

#include "launcher/base/printable_message.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace taskcell::sys {

Status PrepareStreams() {
  // Looked at first: afterwards it is open in any case.
  const bool is_open = AccessMode(STDOUT_FILENO).ok();
  TRY(FillStandardStreams());
  (void)std::signal(SIGXFSZ, SIG_IGN);  // ignoring: cannot fail for these
  (void)std::signal(SIGPIPE, SIG_IGN);
  if (is_open) return Ok();
  return Error(Kind::kUsage,
               "standard output is closed: what was asked for would have nowhere to go");
}

bool PrintOutput(std::string_view program, std::string_view text) {
  Status written = WriteAll(STDOUT_FILENO, text);
  if (!written.ok()) PrintMessage(program, Text("standard output: ", written.error().text));
  return written.ok();
}

void PrintMessage(std::string_view program, std::string_view text) {
  constexpr std::string_view kFurtherLine = "\n  ";
  std::string message = Text(program, ": ");
  for (std::size_t end = text.find(kFurtherLine); end != text.npos; end = text.find(kFurtherLine)) {
    message += PrintableMessage(text.substr(0, end)) + std::string(kFurtherLine);
    text.remove_prefix(end + kFurtherLine.size());
  }
  message += PrintableMessage(text) + "\n";
  (void)WriteAll(STDERR_FILENO, message);  // ignoring: see the header
}

}  // namespace taskcell::sys
