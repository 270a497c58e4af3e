#pragma once

#include <memory>

#include "gateway/runtimes/run_facts.h"
#include "launcher/base/json_value.h"

namespace taskcell::gateway {

// Understands the events of one program. One object a run.
class EventReader {
 public:
  virtual ~EventReader() = default;
  // Takes one object of the output, in order.
  virtual void Take(const JsonValue& event, RunFacts& facts) = 0;
  // Takes the end of the output.
  virtual void End(RunFacts& facts) = 0;
};

// claude, and taskcell-loop, which writes the same events. `check_tools`: a tool that is not of
// claude's file and shell set is a violation.
std::unique_ptr<EventReader> MakeClaudeEvents(bool check_tools);
// codex exec --json.
std::unique_ptr<EventReader> MakeCodexEvents();
// agy, as a stream of events or as one printed object.
std::unique_ptr<EventReader> MakeAntigravityEvents();

}  // namespace taskcell::gateway
