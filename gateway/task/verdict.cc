#include "gateway/task/verdict.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "gateway/runtimes/tool_names.h"
#include "gateway/task/program_age.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

std::string CleanToolName(std::string_view tool, std::string_view extra) {
  constexpr std::size_t kMaxName = 64;
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string out;
  for (char c : tool) {
    if (out.size() == kMaxName) break;
    if (kAllowed.find(c) != std::string_view::npos || extra.find(c) != std::string_view::npos)
      out += c;
  }
  return out;
}

// The tools a program may call; the broker's record of what the model called is checked against
// them, whatever the stream says. The other programs' loops refuse foreign names themselves.
std::span<const std::string_view> ToolsOf(Runtime runtime) {
  if (runtime == Runtime::kClaude) return kClaudeTools;
  if (runtime == Runtime::kGrok) return kGrokTools;
  if (runtime == Runtime::kCodex) return kCodexTools;
  return {};
}

bool Has(std::span<const std::string_view> allowed, std::string_view tool) {
  return std::find(allowed.begin(), allowed.end(), tool) != allowed.end();
}

// A name that was not offered is the model's own invention, of which codex, unlike the others,
// tells nothing and runs nothing.
bool IsInvented(const Evidence& evidence, const std::string& tool) {
  const std::vector<std::string>& offered = evidence.egress.tools_offered;
  return evidence.runtime == Runtime::kCodex &&
         std::find(offered.begin(), offered.end(), tool) == offered.end();
}

std::string_view Place(const Evidence& evidence) { return evidence.on_host ? "host" : "sandbox"; }

std::string FindForbiddenTool(const Evidence& evidence) {
  if (evidence.run.outcome == StreamOutcome::kToolViolation)
    return evidence.run.violation.empty() ? "unnamed tool" : evidence.run.violation;
  const std::span<const std::string_view> allowed = ToolsOf(evidence.runtime);
  if (allowed.empty()) return "";
  for (const std::string& tool : evidence.egress.tools_called) {
    if (!Has(allowed, tool) && !IsInvented(evidence, tool)) return tool;
  }
  return "";
}

std::string ExitText(const gate::JobEnd& end) {
  if (end.outcome != gate::JobOutcome::kExited) return "unknown";
  if (end.exit.signal != 0) return Text("signal ", end.exit.signal);
  return std::to_string(end.exit.code);
}

// The end of what a program wrote to its standard error, whole characters.
std::string_view EndOf(std::string_view text) {
  constexpr std::size_t kMost = 2000;
  constexpr unsigned char kContinuationMask = 0xC0;
  constexpr unsigned char kContinuation = 0x80;
  if (text.size() <= kMost) return text;
  text.remove_prefix(text.size() - kMost);
  while (!text.empty() &&
         (static_cast<unsigned char>(text.front()) & kContinuationMask) == kContinuation)
    text.remove_prefix(1);
  return text;
}

std::string RefusedTunnels(const EgressRecord& egress) {
  if (egress.totals.tunnels_refused == 0) return "";
  auto first = std::find_if(egress.tunnels.begin(), egress.tunnels.end(),
                            [](const EgressTunnel& tunnel) { return !tunnel.code.empty(); });
  std::string which;
  if (first != egress.tunnels.end())
    which = Text(", the first to ", Printable(first->host), " (", first->code, ")");
  return Text("the broker refused ", egress.totals.tunnels_refused, " tunnels", which);
}

// What the operator should know beside the message.
std::string Detail(const Evidence& evidence) {
  std::string detail;
  auto add = [&](std::string_view part) {
    if (part.empty()) return;
    if (!detail.empty()) detail += " | ";
    detail += part;
  };
  if (evidence.events.has_value() && evidence.events->oom_kills > 0)
    add(Text("the memory limit was reached: ", evidence.events->oom_kills,
             " processes were killed; raise memory_bytes or let the task use less"));
  if (evidence.events.has_value() && evidence.events->pids_refusals > 0)
    add(Text("the process limit was reached ", evidence.events->pids_refusals, " times"));
  if (!evidence.events.has_value() && !evidence.on_host) add("what the cgroup counted is unknown");
  add(evidence.transport_error);
  if (evidence.end.outcome == gate::JobOutcome::kRefused)
    add(Text("the job did not start at ", evidence.end.refusal.stage, ": ",
             evidence.end.refusal.text));
  if (evidence.end.outcome == gate::JobOutcome::kGateClosed)
    add(evidence.on_host ? "taskcell-host went away" : "the cell's PID 1 went away");
  if (evidence.end.outcome == gate::JobOutcome::kOverdue) add("the job did not end when asked");
  const EgressTotals& totals = evidence.egress.totals;
  if (totals.upstream_failures > 0)
    add(Text(totals.upstream_failures, " requests got no usable answer from the provider"));
  if (totals.provider_errors > 0)
    add(Text("the provider failed ", totals.provider_errors, " times with a status of 5xx"));
  if (totals.model_not_found > 0) add("the provider does not know the model");
  if (totals.refused > 0) add(Text("the broker refused ", totals.refused, " requests"));
  add(RefusedTunnels(evidence.egress));
  add(evidence.run.detail);
  add(EndOf(Trim(evidence.run.diagnostics)));
  return detail.empty() ? "no diagnostic output" : detail;
}

// The job ended with a failure of its own.
bool ProgramFailed(const Evidence& evidence) {
  return evidence.end.outcome != gate::JobOutcome::kExited || evidence.end.exit.signal != 0 ||
         evidence.end.exit.code != 0;
}

bool DeadlinePassed(const Evidence& evidence) {
  return evidence.end.deadline_passed || (evidence.end.outcome == gate::JobOutcome::kExited &&
                                          evidence.end.exit.reason == cell::ExitReason::kDeadline);
}

Verdict Fail(std::string_view code, std::string message) {
  Verdict verdict;
  verdict.code = code;
  verdict.message = std::move(message);
  return verdict;
}

Verdict Succeed(std::string reply, bool step_limit) {
  Verdict verdict;
  verdict.reply = std::move(reply);
  verdict.step_limit = step_limit;
  return verdict;
}

Verdict StepLimit(const Evidence& evidence) {
  if (evidence.run.reply.has_value()) return Succeed(*evidence.run.reply, true);
  return Fail("step_limit",
              Text("the AI reached the ", Place(evidence), " step limit (", evidence.max_turns,
                   ") before writing a reply; raise max_turns or split the task"));
}

// The program is not there, or cannot be executed: the configuration names another than the root
// has.
Verdict NoProgram(const Evidence& evidence) {
  if (evidence.on_host)
    return Fail(
        "invalid_config",
        Text("`", Printable(evidence.executable), "` cannot be started on the host (",
             evidence.end.refusal.text, "); install it, or put it into the PATH of the gateway"));
  return Fail("invalid_config", NoProgramText(evidence.executable, evidence.root,
                                              evidence.end.refusal.text, evidence.runtime));
}

// What became of a job that was to start and did not.
Verdict Refused(const Evidence& evidence) {
  const cell::Refusal& refusal = evidence.end.refusal;
  if (IsForWantOfProgram(refusal)) return NoProgram(evidence);
  return Fail("supervisor_refused",
              Text("the ", Place(evidence), " supervisor refused its setup (", refusal.stage, ")"));
}

// Whether what the program itself tells of its success counts: a program that never had an answer
// of the provider made it up. Where no broker reads, its word is all there is.
bool MayBeBelieved(const Evidence& evidence) {
  return IsStreamEvidence(evidence) || evidence.egress.totals.model_calls > 0;
}

bool ReachedStepLimit(const Evidence& evidence) {
  if (evidence.over_steps) return true;
  const bool says_limit =
      evidence.run.step_limit || evidence.run.outcome == StreamOutcome::kStepLimit;
  return says_limit && evidence.end.outcome == gate::JobOutcome::kExited && MayBeBelieved(evidence);
}

// The provider never gave an answer, and not because of the account.
bool ProviderWasAway(const EgressTotals& totals) {
  return totals.model_calls == 0 && (totals.provider_errors > 0 || totals.upstream_failures > 0);
}

Verdict NoReply(const Evidence& evidence) {
  constexpr unsigned kMiB = 20;
  const EgressTotals& totals = evidence.egress.totals;
  if (ProviderWasAway(totals))
    return Fail("provider_unavailable",
                Text("the ", FamilyName(evidence.runtime), " provider gave no answer (",
                     totals.upstream_failures, " requests failed, ", totals.provider_errors,
                     " were answered with a status of 5xx); try again later"));
  if (evidence.events.has_value() && evidence.events->oom_kills > 0)
    return Fail("out_of_memory",
                Text("the sandbox ran out of memory (", evidence.memory_bytes >> kMiB,
                     " MiB): raise memory_bytes or let the task use less"));
  if (evidence.events.has_value() && evidence.events->pids_refusals > 0)
    return Fail("pids_limit", Text("the sandbox reached its process limit (", evidence.pids,
                                   "): raise pids or let the task start fewer"));
  if (std::optional<std::string> why = WhyTooOld(evidence); why.has_value())
    return Fail("invalid_config", std::move(*why));
  return Fail("no_reply", Text("the ", FamilyName(evidence.runtime),
                               evidence.on_host ? " CLI on the host" : " CLI in the sandbox",
                               " ended without a reply (exit ", ExitText(evidence.end), ")"));
}

// The last two lines of the order: what the provider is to blame for, and a reply or none.
Verdict JudgeEnded(const Evidence& evidence) {
  const EgressTotals& totals = evidence.egress.totals;
  const StreamOutcome told = evidence.run.outcome;
  const bool reply = told == StreamOutcome::kSuccess && evidence.run.reply.has_value() &&
                     !ProgramFailed(evidence) && MayBeBelieved(evidence);
  if (reply) return Succeed(*evidence.run.reply, evidence.run.step_limit);
  const std::string_view family = FamilyName(evidence.runtime);
  const bool says_limited = IsStreamEvidence(evidence) && told == StreamOutcome::kRateLimited;
  const bool says_rejected = IsStreamEvidence(evidence) && told == StreamOutcome::kAuthFailed;
  if (totals.rate_limited > 0 || totals.billing > 0 || says_limited)
    return Fail("rate_limited",
                Text("the ", family, " provider rate-limited or rejected the request for quota",
                     totals.retry_after_seconds > 0
                         ? Text("; it may be asked again in ", totals.retry_after_seconds, " s")
                         : ""));
  if (totals.budget_spent)
    return Fail("budget_spent",
                Text("account `", evidence.account, "` has spent its monthly_budget_cents (",
                     evidence.budget_cents,
                     "), so the task could ask the provider for nothing more; raise it in "
                     "config.toml, add another account, or wait for the next month"));
  if (totals.auth_failures > 0 || says_rejected)
    return Fail("auth_failed",
                Text("authentication failed: the ", family, " provider rejected ",
                     evidence.account.empty()
                         ? std::string("the program's own login")
                         : Text("the credential of account `", evidence.account, "`")));
  return NoReply(evidence);
}

Verdict Judge(const Evidence& evidence) {
  if (evidence.on_host && evidence.run.outcome == StreamOutcome::kToolViolation)
    return Fail("transport_failed", "the output of the host run could not be read");
  if (std::string tool = FindForbiddenTool(evidence); !tool.empty()) {
    std::string shown = CleanToolName(tool, "_-.: ");
    Verdict verdict =
        Fail("tool_violation",
             Text("the AI in the sandbox used a tool outside the allowed file/shell surface (",
                  shown.empty() ? "unnamed tool" : shown, "); the task was stopped"));
    verdict.forbidden_tool = AuditToolName(tool);
    return verdict;
  }
  if (!evidence.transport_error.empty())
    return Fail("transport_failed",
                Text("the ", Place(evidence), " run failed before the CLI finished"));
  if (evidence.egress.totals.credential_echoed)
    return Fail("transport_failed",
                "the sandbox run failed before the CLI finished: the provider's answer held the "
                "credential, so it was not passed on");
  if (evidence.run.outcome == StreamOutcome::kOutputOverflow)
    return Fail("output_overflow",
                Text("the ", Place(evidence), " output exceeded 1 MiB and was stopped"));
  if (evidence.end.outcome == gate::JobOutcome::kRefused) return Refused(evidence);
  if (ReachedStepLimit(evidence)) return StepLimit(evidence);
  if (evidence.cancelled) return Fail("stopped", Text("the ", Place(evidence), " run was stopped"));
  if (DeadlinePassed(evidence))
    return Fail("timeout", TimedOutMessage(evidence.timeout_ms, evidence.on_host));
  if (evidence.end.outcome == gate::JobOutcome::kGateClosed)
    return Fail("result_incomplete",
                Text("the ", Place(evidence),
                     " run ended before its result was complete, so nothing of it was taken"));
  if (evidence.end.outcome != gate::JobOutcome::kExited)
    return Fail("transport_failed",
                Text("the ", Place(evidence), " run failed before the CLI finished"));
  return JudgeEnded(evidence);
}

}  // namespace

bool IsStreamEvidence(const Evidence& evidence) {
  return evidence.on_host || evidence.credential_inside;
}

std::string RootText(cell::RootKind kind, std::string_view source) {
  switch (kind) {
    case cell::RootKind::kImage:
      return Text("image `", Printable(source), "`");
    case cell::RootKind::kRootfs:
      return Text("root directory `", Printable(source), "`");
    case cell::RootKind::kHost:
      break;
  }
  return "host's programs that a cell sees";
}

bool IsForWantOfProgram(const cell::Refusal& refusal) {
  constexpr std::array<int32_t, 5> kNoProgram = {ENOENT, ENOTDIR, EACCES, ENOEXEC, ELOOP};
  return refusal.stage == "exec" &&
         std::find(kNoProgram.begin(), kNoProgram.end(), refusal.err) != kNoProgram.end();
}

std::string NoProgramText(std::string_view executable, std::string_view root, std::string_view why,
                          Runtime runtime) {
  return Text("`", Printable(executable), "` cannot be started in the ", root, " (", why,
              "); set [container.sandbox.executables] ", FamilyName(runtime), " to its path there");
}

std::string TimedOutMessage(uint64_t timeout_ms, bool on_host) {
  constexpr uint64_t kMillis = 1000;
  return Text("the ", on_host ? "host" : "sandbox", " task timed out after ", timeout_ms / kMillis,
              " s");
}

std::string AuditToolName(std::string_view tool) {
  std::string name = CleanToolName(tool, "_-.");
  return name.empty() ? "unknown" : name;
}

Verdict Classify(const Evidence& evidence) {
  Verdict verdict = Judge(evidence);
  if (!verdict.code.empty()) verdict.detail = Detail(evidence);
  return verdict;
}

}  // namespace taskcell::gateway
