#include "gateway/task/program_age.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// What the programs were seen to say (claude 2.1.197, codex 0.171.0), and what Go's and clap's own
// readers of command lines say. All in lower case.
constexpr std::array<std::string_view, 8> kUnknown = {
    "error: unknown option",          // claude: an option
    "is invalid. allowed choices",    // claude: a value of an option
    "unexpected argument",            // codex: an option
    "unknown configuration field",    // codex: a setting, under --strict-config
    "unknown variant",                // codex: a value of one
    "invalid value",                  // clap: a value of an option
    "flag provided but not defined",  // Go
    "unknown flag",                   // Go, with cobra
};

bool SaysUnknown(const std::string& diagnostics) {
  const std::string text = Lower(diagnostics);
  return std::any_of(kUnknown.begin(), kUnknown.end(), [&text](std::string_view phrase) {
    return text.find(phrase) != std::string::npos;
  });
}

}  // namespace

std::optional<std::string> WhyTooOld(const Evidence& evidence) {
  const EgressTotals& totals = evidence.egress.totals;
  const gate::JobEnd& end = evidence.end;
  const bool failed_by_itself = end.outcome == gate::JobOutcome::kExited &&
                                end.exit.reason == cell::ExitReason::kExited &&
                                end.exit.signal == 0 && end.exit.code != 0;
  const bool asked = totals.requests > 0 || totals.tunnels > 0 || evidence.run.used_tool ||
                     evidence.run.has_result;
  if (!failed_by_itself || asked || !SaysUnknown(evidence.run.diagnostics)) return std::nullopt;
  const std::string program = Text("`", Printable(evidence.executable), "`");
  const std::string_view family = FamilyName(evidence.runtime);
  constexpr std::string_view kWhy =
      " does not know an option it is started with: it is older than taskcell needs, or another "
      "program";
  if (evidence.on_host) return Text(program, " on the host", kWhy, "; install a newer ", family);
  return Text(program, " in the ", evidence.root, kWhy,
              "; `taskcell image check` shows its version; put a newer ", family,
              " there, or set [container.sandbox.executables] ", family, " to one");
}

}  // namespace taskcell::gateway
