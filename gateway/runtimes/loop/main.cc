// taskcell-loop MODEL TURNS: the agent of runtime openai_compat, inside a cell. The prompt is
// standard input; OPENAI_BASE_URL names the broker on the cell's loopback, OPENAI_API_KEY is what
// it expects instead of a credential. Events go to standard output, one JSON object a line. Exit
// status: 0 there is a reply, 1 there is none, 2 it was started wrongly.
//
// taskcell-loop --tool-guard: antigravity's hook, inside a cell (see tool_guard.h). Exit status 0,
// whatever it answers.
#include <cstdlib>
#include <optional>

#include "gateway/runtimes/loop/run.h"
#include "gateway/runtimes/loop/tool_guard.h"
#include "gateway/runtimes/tool_names.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/output.h"

namespace taskcell::gateway::loop {
namespace {

// A 4 MiB prompt and the agent's own texts around it.
constexpr std::size_t kMaxPromptBytes = 6U << 20U;
constexpr uint64_t kMaxTurns = 1000;

// Takes a variable out of the environment, so that the shell tool does not hand it on.
std::string TakeVariable(const char* name) {
  const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  std::string copy = value == nullptr ? "" : value;
  (void)::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): one thread; ignoring: cannot fail here
  return copy;
}

// What cannot be read is denied.
Result<bool> Guard() {
  constexpr std::size_t kMaxCallBytes = 16U << 20U;  // a file's whole content may be in it
  Result<std::string> call = sys::ReadAll(0, kMaxCallBytes);
  TRY(sys::WriteAll(1, GuardAnswer(call.ok() ? call.value() : "") + "\n"));
  return true;
}

Result<bool> Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == kToolGuard) return Guard();
  uint64_t turns = argc == 3 ? ParseUnsigned(argv[2]).value_or(0) : 0;
  if (turns == 0 || turns > kMaxTurns || argv[1][0] == '\0') {
    return Error(Kind::kUsage, "usage: taskcell-loop MODEL TURNS (1 to 1000), prompt on stdin");
  }
  Peer peer = TRY(ParsePeer(TakeVariable("OPENAI_BASE_URL")));
  std::string key = TakeVariable("OPENAI_API_KEY");
  if (key.find_first_of("\r\n") != std::string::npos) {
    return Error(Kind::kUsage, "OPENAI_API_KEY has a line break");
  }
  LoopTask task{argv[1], turns, TRY(sys::ReadAll(0, kMaxPromptBytes).With("read the prompt"))};
  LoopPorts ports;
  ports.ask = [&peer, &key](const std::string& request) {
    return Post(peer, "/chat/completions", key, request);
  };
  ports.tell = [](const std::string& line) { return sys::WriteAll(1, line + "\n"); };
  return RunLoop(task, ports);
}

}  // namespace
}  // namespace taskcell::gateway::loop

int main(int argc, char** argv) {
  taskcell::Result<bool> replied = taskcell::gateway::loop::Main(argc, argv);
  if (replied.ok()) return replied.value() ? 0 : 1;
  taskcell::sys::PrintMessage("taskcell-loop", replied.error().text);
  return replied.error().kind == taskcell::Kind::kUsage ? 2 : 1;
}
