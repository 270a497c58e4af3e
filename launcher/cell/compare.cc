#include "launcher/cell/compare.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cell/capability_names.h"
#include "launcher/cell/compare_parts.h"
#include "launcher/cell/denied_calls.h"
#include "launcher/cell/engine_additions.h"

namespace taskcell::cell {
namespace {

constexpr uint32_t kFilterMode = 2;

template <typename Numbers>
std::string Join(const Numbers& numbers) {
  std::string text;
  for (auto number : numbers) text += Text(text.empty() ? "" : " ", number);
  return text.empty() ? "none" : text;
}

void CompareIds(std::string field, uint32_t planned, const std::array<uint32_t, 4>& seen,
                Mismatches& found) {
  bool same = std::all_of(seen.begin(), seen.end(), [&](uint32_t id) { return id == planned; });
  if (!same) found.Add(std::move(field), std::to_string(planned), Join(seen));
}

// An engine that sets the group of a process may put the same group into its supplementary ones,
// which gives it nothing more.
void CompareGroups(uint32_t gid, const std::vector<uint32_t>& groups, Mismatches& found) {
  bool harmless =
      std::all_of(groups.begin(), groups.end(), [&](uint32_t group) { return group == gid; });
  if (!harmless) found.Add("groups", "none", Join(groups));
}

void CompareCapabilities(const std::array<uint64_t, 5>& sets, Mismatches& found) {
  constexpr std::string_view kNames[] = {"inheritable", "permitted", "effective", "bounding",
                                         "ambient"};
  for (std::size_t set = 0; set < sets.size(); ++set) {
    if (sets[set] == 0) continue;
    found.Add(Text("capabilities.", kNames[set]), "none", CapabilityNames(sets[set]));
  }
}

void CompareEnvironment(const CellPlan& plan, Engine engine, const InsideAttestation& seen,
                        Mismatches& found) {
  std::span<const std::string_view> own = EngineEnvironment(engine);
  for (const std::string& name : seen.environment_names) {
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    const std::vector<std::string>& image = plan.image_environment;
    if (std::find(image.begin(), image.end(), name) != image.end()) continue;
    found.Add(Text("environment:", Printable(name)), "not set", "set");
  }
}

// In the observer's user namespace; which id it is, the caller decides and names.
void CompareHostIds(std::string field, const std::array<uint32_t, 4>& ids, Mismatches& found) {
  bool root = std::any_of(ids.begin(), ids.end(), [](uint32_t id) { return id == 0; });
  bool one = std::all_of(ids.begin(), ids.end(), [&](uint32_t id) { return id == ids[0]; });
  if (root || !one) found.Add(std::move(field), "one id that is not 0", Join(ids));
}

// Under a filter of the plan's own a call that it was asked about must have got its very answer.
bool IsAsPlanned(const CellPlan& plan, const DeniedCallRule& rule, const DeniedCall& call) {
  if (call.by_filter == 0) return IsDenied(rule, call.result);
  if (plan.filter.empty()) return false;
  if (call.by_filter == DeniedCall::kLeftOpen && rule.in_every_profile) return false;
  return call.by_filter < 0 ? call.result == 0 : call.result == call.by_filter;
}

void CompareRow(const CellPlan& plan, const DeniedCallRule& rule, const InsideAttestation& seen,
                Mismatches& found) {
  std::vector<const DeniedCall*> calls;
  for (const DeniedCall& call : seen.denied_calls) {
    if (call.name == rule.name) calls.push_back(&call);
  }
  if (calls.size() == 1 && IsAsPlanned(plan, rule, *calls[0])) return;
  std::vector<int32_t> allowed;
  for (int32_t each : rule.allowed) {
    if (each != 0) allowed.push_back(each);
  }
  std::vector<int32_t> results;
  results.reserve(calls.size());
  for (const DeniedCall* call : calls) results.push_back(call->result);
  std::string text = results.empty() ? "not tried" : Text("outcome ", Join(results));
  if (results.size() == 1 && results[0] == 0) text = "it succeeded";
  found.Add(Text("denied:", rule.name), Text("outcome ", Join(allowed)), std::move(text));
}

bool IsKnownRow(std::string_view name) {
  std::span<const DeniedCallRule> rules = DeniedCallRules();
  return std::any_of(rules.begin(), rules.end(),
                     [&](const DeniedCallRule& rule) { return rule.name == name; });
}

}  // namespace

void CompareProcess(const CellPlan& plan, Engine engine, const Attestation& seen,
                    Mismatches& found) {
  const InsideAttestation& inside = seen.inside;
  if (inside.pid != 1) found.Add("pid", "1", std::to_string(inside.pid));
  CompareIds("uid", plan.uid, inside.uids, found);
  CompareIds("gid", plan.gid, inside.gids, found);
  CompareGroups(plan.gid, inside.groups, found);
  CompareCapabilities(inside.capabilities, found);
  if (!inside.no_new_privileges) found.Add("no_new_privileges", "set", "not set");
  if (inside.dumpable) found.Add("dumpable", "no", "yes");
  if (inside.hostname != plan.hostname) {
    found.Add("hostname", plan.hostname, Printable(inside.hostname));
  }
  // A working directory outside the root shows as "(unreachable)/..." (CVE-2024-21626).
  if (!inside.working_directory.starts_with('/')) {
    found.Add("working_directory", "in the cell", Printable(inside.working_directory));
  }
  CompareEnvironment(plan, engine, inside, found);
  if (seen.outside.host_pid <= 0) {
    found.Add("host_pid", "known", std::to_string(seen.outside.host_pid));
  }
  CompareHostIds("host_uid", seen.outside.host_uids, found);
  CompareHostIds("host_gid", seen.outside.host_gids, found);
}

void CompareWitness(const CellPlan& plan, const InsideAttestation& seen, Mismatches& found) {
  for (const DeniedCallRule& rule : DeniedCallRules()) {
    if (RuleApplies(rule, seen.landlock_abi)) CompareRow(plan, rule, seen, found);
  }
  for (const DeniedCall& call : seen.denied_calls) {
    if (IsKnownRow(call.name)) continue;
    found.Add(Text("denied:", Printable(call.name)), "no such row", "tried");
  }
  if (seen.witness_seccomp_mode != kFilterMode) {
    found.Add("seccomp", "a filter", Text("mode ", seen.witness_seccomp_mode));
  }
  if (seen.witness_filter != plan.filter) {
    found.Add("seccomp.filter", plan.filter.empty() ? "the default" : "the plan's own",
              seen.witness_filter.empty() ? "the default" : "another");
  }
  if (seen.landlock_abi > 0 && !seen.landlock_applied) {
    found.Add("landlock", "applied", Text("not applied, ABI ", seen.landlock_abi));
  }
  if (seen.witness_nofile != plan.limits.nofile) {
    found.AddLimit("limits.nofile", std::to_string(plan.limits.nofile),
                   std::to_string(seen.witness_nofile));
  }
  if (plan.limits.file_bytes != 0 && seen.witness_file_bytes != plan.limits.file_bytes) {
    found.AddLimit("limits.file_size", std::to_string(plan.limits.file_bytes),
                   std::to_string(seen.witness_file_bytes));
  }
  if (seen.witness_core > kCoreBytes) {
    found.AddLimit("limits.core", Text("at most ", kCoreBytes), std::to_string(seen.witness_core));
  }
}

std::vector<Mismatch> Compare(const CellPlan& plan, Engine engine, const Attestation& seen) {
  Mismatches found;
  CompareProcess(plan, engine, seen, found);
  CompareWitness(plan, seen.inside, found);
  CompareSettings(engine, seen.inside.settings, found);
  CompareMounts(plan, engine, seen.inside, found);
  CompareLimits(plan.limits, seen.inside.limits, seen.outside.limits, found);
  CompareInventory(seen.inside, found);
  CompareNamespaces(engine, seen, found);
  CompareKeyring(plan, engine, seen, found);
  CompareChannels(plan, seen.inside, found);
  return found.Take();
}

std::vector<std::string> CallsLeftOpen(const InsideAttestation& seen) {
  std::vector<std::string> names;
  for (const DeniedCall& call : seen.denied_calls) {
    if (call.by_filter == DeniedCall::kLeftOpen) names.push_back(call.name);
  }
  return names;
}

std::string Describe(const Mismatch& mismatch) {
  return Text(Printable(mismatch.field), ": planned ", Printable(mismatch.planned), ", found ",
              Printable(mismatch.found));
}

}  // namespace taskcell::cell
