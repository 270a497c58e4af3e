// taskcell-gateway: serves one home.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>

#include "gateway/api/gateway.h"
#include "gateway/config/wiping_heap.h"
#include "launcher/base/text.h"
#include "launcher/sys/output.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace {

namespace gateway = taskcell::gateway;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(std::string_view text, int status) {
  taskcell::sys::PrintMessage("taskcell-gateway", text);
  return status;
}

std::string CheckNotEmpty(const std::string& path) {
  return taskcell::Trim(path).empty() ? "the path is empty (an unset variable?)" : "";
}

int Main(int argc, char** argv) {
  gateway::GatewayOptions options;
  uint64_t drain = gateway::kDefaultDrain.count();
  CLI::App app{"Runs the tasks of one home's agents, each in a verified, locked-down cell.",
               "taskcell-gateway"};
  app.set_version_flag("--version", "taskcell-gateway " TASKCELL_VERSION);
  app.add_option("--home", options.home,
                 "The home directory (else $TASKCELL_HOME, $DUDUCLAW_HOME, ~/.taskcell, "
                 "~/.duduclaw)")
      ->check(CheckNotEmpty);
  app.add_option("--drain-seconds", drain,
                 "How long running tasks may go on after SIGTERM before they are cancelled")
      ->check(CLI::Range(uint64_t{0}, static_cast<uint64_t>(gateway::kMaxDrain.count())))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  options.drain = std::chrono::seconds(drain);
  taskcell::Status served = gateway::RunGateway(options);
  if (served.ok()) return 0;
  const taskcell::Error& error = served.error();
  const std::string text = error.code.empty()
                               ? taskcell::Printable(error.text)
                               : taskcell::Text(error.code, ": ", taskcell::Printable(error.text));
  return Complain(text, error.kind == taskcell::Kind::kConfig ? kUsage : kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  gateway::WipeWhatOpensslFrees();
  // Before anything else is opened: a descriptor of ours must never become 0 or 2.
  if (!taskcell::sys::FillStandardStreams().ok()) return kFailed;
  // A file that may not grow, or a reader that is gone, is a failed write like any other.
  (void)std::signal(SIGXFSZ, SIG_IGN);  // ignoring: cannot fail for these
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)taskcell::sys::RaiseResourceLimit(RLIMIT_NOFILE);  // ignoring: then the soft one holds
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    return Complain(error.what(), kFailed);
  }
}
