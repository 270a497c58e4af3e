#include <unistd.h>

#include <cstdio>

#include "gateway/cli/run_command.h"
#include "gateway/task/verdict.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/casedriver/verbs.h"

namespace taskcell::casedriver {
namespace {

using gateway::Evidence;

constexpr std::size_t kMaxEvidenceBytes = 8U << 20U;

Result<gate::JobOutcome> ReadEnd(std::string_view word) {
  if (word.empty() || word == "exited") return gate::JobOutcome::kExited;
  if (word == "refused") return gate::JobOutcome::kRefused;
  if (word == "gate_closed") return gate::JobOutcome::kGateClosed;
  if (word == "overdue") return gate::JobOutcome::kOverdue;
  return Error(Kind::kUsage, Text("end is not '", Printable(word), "'"));
}

Result<cell::ExitReason> ReadReason(std::string_view word) {
  if (word.empty() || word == "exited") return cell::ExitReason::kExited;
  if (word == "deadline") return cell::ExitReason::kDeadline;
  if (word == "cancelled") return cell::ExitReason::kCancelled;
  return Error(Kind::kUsage, Text("reason is not '", Printable(word), "'"));
}

Result<gate::JobEnd> ReadJobEnd(const JsonValue& json) {
  gate::JobEnd end;
  end.outcome = TRY(ReadEnd(json.String("end")));
  end.started = end.outcome != gate::JobOutcome::kRefused;
  end.cancelled = json.True("cancelled");
  end.deadline_passed = json.True("deadline_passed");
  end.exit.reason = TRY(ReadReason(json.String("reason")));
  end.exit.code = static_cast<int32_t>(json.Unsigned("exit"));
  end.exit.signal = static_cast<int32_t>(json.Unsigned("signal"));
  if (const JsonValue* refusal = json.Find("refusal")) {
    end.refusal.stage = refusal->String("stage");
    end.refusal.text = refusal->String("text");
  }
  return end;
}

gateway::EgressTotals ReadTotals(const JsonValue& json) {
  gateway::EgressTotals totals;
  for (const auto& [name, field] :
       std::initializer_list<std::pair<const char*, uint64_t gateway::EgressTotals::*>>{
           {"requests", &gateway::EgressTotals::requests},
           {"refused", &gateway::EgressTotals::refused},
           {"model_calls", &gateway::EgressTotals::model_calls},
           {"steps", &gateway::EgressTotals::steps},
           {"tool_calls", &gateway::EgressTotals::tool_calls},
           {"auth_failures", &gateway::EgressTotals::auth_failures},
           {"billing", &gateway::EgressTotals::billing},
           {"rate_limited", &gateway::EgressTotals::rate_limited},
           {"model_not_found", &gateway::EgressTotals::model_not_found},
           {"provider_errors", &gateway::EgressTotals::provider_errors},
           {"upstream_failures", &gateway::EgressTotals::upstream_failures}})
    totals.*field = json.Unsigned(name);
  totals.credential_echoed = json.True("credential_echoed");
  return totals;
}

Result<Evidence> ReadEvidence(std::string_view text) {
  constexpr uint64_t kDefaultTurns = 30;
  constexpr int kSignalBase = 128;
  const JsonValue json = TRY(ParseJson(text));
  if (!json.is_object()) return Error(Kind::kUsage, "the evidence is no JSON object");
  std::string_view family = json.String("runtime");
  Evidence evidence;
  evidence.runtime = TRY(gateway::ParseFamily(family.empty() ? "claude" : family));
  evidence.account = json.String("account");
  evidence.max_turns = json.Unsigned("max_turns");
  if (evidence.max_turns == 0) evidence.max_turns = kDefaultTurns;
  evidence.timeout_ms = json.Unsigned("timeout_ms");
  evidence.transport_error = json.String("transport_error");
  evidence.end = TRY(ReadJobEnd(json));
  evidence.cancelled = evidence.end.cancelled;
  evidence.over_steps = json.True("over_steps");
  const int exit = evidence.end.exit.signal != 0 ? kSignalBase + evidence.end.exit.signal
                                                 : evidence.end.exit.code;
  evidence.run = gateway::ParseRun(evidence.runtime, evidence.max_turns, json.String("stdout"),
                                   json.String("stderr"), exit);
  const JsonValue* events = json.Find("events");
  if (events == nullptr || events->boolean) {
    evidence.events = cgroup::Events{};
    evidence.events->oom_kills = json.Unsigned("oom_kills");
    evidence.events->pids_refusals = json.Unsigned("pids_refusals");
  }
  if (const JsonValue* egress = json.Find("egress")) {
    evidence.egress.totals = ReadTotals(*egress);
  } else {
    evidence.egress.totals.model_calls = 1;
  }
  return evidence;
}

}  // namespace

int ClassifyExit() {
  Result<std::string> text = sys::ReadAll(STDIN_FILENO, kMaxEvidenceBytes);
  Result<Evidence> evidence =
      text.ok() ? ReadEvidence(text.value()) : Result<Evidence>(text.error());
  if (!evidence.ok()) return Complain(evidence.error().text);
  return PrintAnswer(gateway::AnswerOf(gateway::Classify(evidence.value())), true);
}

}  // namespace taskcell::casedriver
