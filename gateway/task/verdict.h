#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/egress/record.h"
#include "gateway/runtimes/runtime.h"
#include "gateway/runtimes/stream.h"
#include "gateway/task/export.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cgroup/events.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

// Everything that is known about a job that was handed over, from four sides: the gate, the
// program's stream, the broker, the cell's cgroup.
struct Evidence {
  Runtime runtime = Runtime::kClaude;
  // On the host itself: no broker stood between, so the program's own stream is the evidence, and
  // no cgroup counted.
  bool on_host = false;
  // The program spoke to its provider through a tunnel that nobody reads, so its own stream is the
  // evidence here, too.
  bool credential_inside = false;
  std::string account;        // its id, for a message
  uint64_t budget_cents = 0;  // of the account in a month, for a message
  std::string executable;     // in the cell, for a message
  std::string root;           // where it was looked for: "image `x`"
  uint64_t max_turns = 0;
  uint64_t timeout_ms = 0;
  uint64_t memory_bytes = 0;
  uint64_t pids = 0;

  std::string transport_error;  // the gate broke; empty: it did not
  gate::JobEnd end;
  ParsedRun run;
  EgressRecord egress;
  std::optional<cgroup::Events> events;   // nullopt: unknown, since PID 1 died
  std::optional<ExportSummary> exported;  // nullopt: nobody asked for it
  bool cancelled = false;                 // by the caller of the task
  bool over_steps = false;                // the broker counted more than max_turns steps
};

// Whether the program's stream is all there is to tell of its provider.
bool IsStreamEvidence(const Evidence& evidence);

// What a task that ran came to. `code` is empty on success, else one of the guide's failure codes.
struct Verdict {
  std::string_view code;
  std::string message;               // for the requester: fixed text and configured values only
  std::optional<std::string> reply;  // only with a success
  bool step_limit = false;           // the reply is the last text before the step limit
  std::string forbidden_tool;        // tool_violation: the name, sanitised
  std::string detail;                // for the operator: may quote the program
};

// Weighs the evidence, in this order: tool violation, transport, overflow, refused set-up, step
// limit, stopped, time-out, reply, rate limit, spent budget, authentication, no reply; where there
// is none and the evidence supports it, provider_unavailable, out_of_memory or pids_limit
// instead of no_reply. A program that is not there, or is too old for
// its command line, is invalid_config. What the program prints can be forged by a tool, so an
// outcome that blames the provider needs the broker's word, and a reply needs at least one answer
// of the provider behind it; where no broker stood between (IsStreamEvidence), the stream is
// believed. Pure.
Verdict Classify(const Evidence& evidence);

// What a cell's programs come from: "image `x`", "root directory `x`", or the host's.
std::string RootText(cell::RootKind kind, std::string_view source);

// Whether a job did not start since its program is not there or cannot be executed, which is the
// fault of its root. Pure.
bool IsForWantOfProgram(const cell::Refusal& refusal);

// That `executable` cannot be started in `root` (a RootText), why, and the key to set.
std::string NoProgramText(std::string_view executable, std::string_view root, std::string_view why,
                          Runtime runtime);

// "the sandbox task timed out after N s", or the host's.
std::string TimedOutMessage(uint64_t timeout_ms, bool on_host = false);

// Only letters, digits and "_-." of a tool's name, at most 64 bytes, else "unknown".
std::string AuditToolName(std::string_view tool);

}  // namespace taskcell::gateway
