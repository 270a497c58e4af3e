#include "gateway/task/evidence_differences.h"

#include <algorithm>
#include <string>

#include "gateway/egress/limits.h"
#include "gateway/ledger/audit.h"
#include "gateway/runtimes/tool_names.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using Differences = std::vector<EvidenceDifference>;

// Names are cut and cleaned on either side in its own way, so they are compared as the audit has
// them.
bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [clean = AuditToolName(name)](const auto& each) {
    return AuditToolName(each) == clean;
  });
}

// A whole answer of a model.
bool IsAnswer(const EgressRequest& request) {
  constexpr int kAnswered = 200;
  return request.code.empty() && request.upstream_status == kAnswered && !IsTokenCount(request);
}

// Whether the model was waiting for its tools: of an answer that was cut off none is run.
bool WaitsForTools(const EgressRequest& request) {
  return !request.tools_called.empty() &&
         (request.finish == "tool_use" || request.finish == "tool_calls");
}

void CompareSteps(const Evidence& evidence, Differences& found) {
  const EgressTotals& totals = evidence.egress.totals;
  const uint64_t most = std::max(totals.model_calls, totals.tool_calls);
  // One call of codex's code mode runs as many tools as its script says.
  const bool many_a_call =
      evidence.runtime == Runtime::kCodex && Has(evidence.egress.tools_called, kCodexCodeMode);
  if (evidence.run.steps > totals.tool_calls && !many_a_call) {
    found.push_back({"steps", Text(evidence.run.steps, " calls of tools"),
                     Text(totals.tool_calls, " calls of tools")});
  } else if (evidence.run.step_limit && most < evidence.max_turns && !many_a_call) {
    found.push_back({"steps", Text("the limit of ", evidence.max_turns, " steps"),
                     Text(most, " calls of models and tools")});
  }
}

// Whether the program came to its end and told of it, so that nothing it did is untold.
bool IsWhole(const Evidence& evidence) {
  return evidence.end.outcome == gate::JobOutcome::kExited &&
         evidence.end.exit.reason == cell::ExitReason::kExited && evidence.run.has_result &&
         evidence.run.unparsable_lines == 0;
}

void CompareTools(const Evidence& evidence, Differences& found) {
  const std::vector<std::string>& told = evidence.run.tools;
  for (const std::string& tool : told) {
    // The record keeps so many distinct names and no more.
    if (evidence.egress.tools_called.size() >= kEgressNamesKept) return;
    if (Has(evidence.egress.tools_called, tool)) continue;
    found.push_back({"tools", Text("the tool ", AuditToolName(tool)), "no call of it"});
    return;
  }
  // codex has names of its own for what the model calls, and leaves some out; of the others,
  // grok's are not known well enough.
  const bool tells_all =
      evidence.runtime == Runtime::kClaude || evidence.runtime == Runtime::kOpenAiCompat;
  if (!tells_all || !IsWhole(evidence) || told.size() == kMaxToldTools) return;
  for (const EgressRequest& request : evidence.egress.requests) {
    if (!IsAnswer(request) || !WaitsForTools(request)) continue;
    for (const std::string& tool : request.tools_called) {
      if (Has(told, tool)) continue;
      found.push_back({"tools", "no call of it", Text("the tool ", AuditToolName(tool))});
      return;
    }
  }
}

// The last answer asked for a tool, so that the conversation was not over.
bool IsOpenEnded(const EgressRecord& record) {
  auto last = std::find_if(record.requests.rbegin(), record.requests.rend(), IsAnswer);
  // Past the record's bound the last one is not known.
  return record.totals.requests <= kEgressRequests && last != record.requests.rend() &&
         !last->tools_called.empty();
}

void CompareFinish(const Evidence& evidence, Differences& found) {
  const EgressTotals& totals = evidence.egress.totals;
  const StreamOutcome told = evidence.run.outcome;
  // Where the broker itself refused, a program may take that for the provider's word.
  const bool is_refused = totals.refused > 0 || totals.connections_refused > 0;
  if (told == StreamOutcome::kSuccess && !evidence.run.step_limit && IsOpenEnded(evidence.egress))
    found.push_back({"finish", "an end", "the last answer calls a tool"});
  if (told == StreamOutcome::kRateLimited && totals.rate_limited + totals.billing == 0 &&
      !is_refused)
    found.push_back({"finish", "a rate limit", "no answer that speaks of one"});
  if (told == StreamOutcome::kAuthFailed && totals.auth_failures == 0 && !is_refused)
    found.push_back({"finish", "a rejected credential", "no answer that rejects it"});
}

// Whether fewer tokens are told than came with whole answers. Our own loop alone counts each of
// them: claude leaves out what it asks for by the way, such as a summary of what was said so far.
bool KeepsTokensBack(const Evidence& evidence) {
  if (evidence.runtime != Runtime::kOpenAiCompat || !IsWhole(evidence) ||
      evidence.run.outcome != StreamOutcome::kSuccess)
    return false;
  uint64_t input = 0;
  uint64_t output = 0;
  for (const EgressRequest& request : evidence.egress.requests) {
    if (!IsAnswer(request)) continue;
    input += request.input_tokens;
    output += request.output_tokens;
  }
  return evidence.run.usage.input < input || evidence.run.usage.output < output;
}

void CompareTokens(const Evidence& evidence, Differences& found) {
  const TokenUsage& told = evidence.run.usage;
  const EgressTotals& totals = evidence.egress.totals;
  const bool is_more = told.input > totals.input_tokens || told.output > totals.output_tokens;
  if (!told.seen || (!is_more && !KeepsTokensBack(evidence))) return;
  found.push_back({"tokens", Text(told.input, " in, ", told.output, " out"),
                   Text(totals.input_tokens, " in, ", totals.output_tokens, " out")});
}

}  // namespace

std::vector<EvidenceDifference> FindDifferences(const Evidence& evidence) {
  Differences found;
  if (IsStreamEvidence(evidence)) return found;
  if (evidence.run.reply.has_value() && evidence.egress.totals.model_calls == 0)
    found.push_back({"reply", "a reply", "no answer of a model"});
  CompareSteps(evidence, found);
  CompareTools(evidence, found);
  CompareFinish(evidence, found);
  CompareTokens(evidence, found);
  return found;
}

Status NoteDifferences(const Home& home, std::string_view family, Receipt& receipt) {
  if (receipt.differences.empty()) return Ok();
  std::string kinds;
  std::string shown;
  for (const EvidenceDifference& difference : receipt.differences) {
    kinds += Text(kinds.empty() ? "" : ",", difference.what);
    shown += Text(shown.empty() ? "" : "; ", difference.what, ": it told ", difference.told,
                  ", the broker recorded ", difference.recorded);
  }
  receipt.warnings.push_back(
      Text("what the AI program told of its run is not what the broker recorded (", shown,
           "); a tool in the cell may have written into its output: do not rely on the reply"));
  return AppendAudit(
      home.fd.get(),
      {"task_sandbox_evidence_differs",
       receipt.agent,
       "warning",
       {{"run_id", receipt.run_id}, {"runtime", std::string(family)}, {"what", kinds}}});
}

}  // namespace taskcell::gateway
