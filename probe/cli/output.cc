#include "probe/cli/output.h"

#include <unistd.h>

#include <cstdlib>

#include "launcher/sys/output.h"
#include "probe/cli/host_command.h"

namespace taskcell::probe {
namespace {

constexpr char kProgram[] = "taskcell-probe";
constexpr std::size_t kColumns = 100;

bool IsSet(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool Print(std::string_view text) { return sys::PrintOutput(kProgram, text); }

int Complain(const Error& error) {
  sys::PrintMessage(kProgram, error.text);
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
