#include "probe/cli/output.h"

#include <unistd.h>

#include <cstdlib>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/cli/host_command.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kColumns = 100;

bool IsSet(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool Print(std::string_view text) {
  Status written = sys::WriteAll(STDOUT_FILENO, text);
  if (!written.ok()) (void)Complain(written.error());  // the caller knows
  return written.ok();
}

int Complain(const Error& error) {
  // ignoring: nobody is left to tell
  (void)sys::WriteAll(STDERR_FILENO, Text("taskcell-probe: ", error.text, '\n'));
  return error.kind == Kind::kUsage ? kExitUsage : kExitUnknown;
}

TableStyle StyleOfOutput() {
  TableStyle style;
  style.width = kColumns;
  bool terminal = ::isatty(STDOUT_FILENO) == 1;
  style.colour = terminal && !IsSet("NO_COLOR");
  return style;
}

}  // namespace taskcell::probe
