#include "probe/cli/delegate_command.h"

#include <pwd.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "launcher/sys/file_tree.h"
#include "probe/cli/host_command.h"
#include "probe/cli/output.h"
#include "probe/delegate/apply.h"
#include "probe/delegate/print.h"
#include "probe/delegate/try_live.h"

namespace taskcell::probe {
namespace {

using delegate::Machine;
using delegate::Plan;
using delegate::Target;

// The accounts as the host knows them, wherever they are kept.
std::optional<Target> FindAccount(const std::string& user) {
  // NOLINTBEGIN(concurrency-mt-unsafe): one thread
  const struct passwd* entry = ::getpwnam(user.c_str());
  std::optional<uint64_t> uid = ParseUnsigned(user);
  if (entry == nullptr && uid && *uid <= UINT32_MAX) entry = ::getpwuid(static_cast<uid_t>(*uid));
  // NOLINTEND(concurrency-mt-unsafe)
  if (entry == nullptr) return {};
  return Target{entry->pw_name, entry->pw_uid, entry->pw_gid};
}

Result<Target> FindTarget(const DelegateOptions& options) {
  std::string user = options.user.empty() ? std::to_string(::geteuid()) : options.user;
  std::optional<Target> target = FindAccount(user);
  if (!target) return Error(Kind::kUsage, Text("--user: there is no user '", Printable(user), "'"));
  if (target->uid == 0)
    return Error(
        Kind::kUsage,
        "root needs no delegation, it makes its cgroups itself; name the user whose limits "
        "are meant: --user NAME");
  if (target->name.find('/') != std::string::npos)
    return Error(Kind::kUsage, Text("--user: no file can be named for '", Printable(user), "'"));
  if (::geteuid() != 0 && (options.apply || options.revert))
    return Error(Kind::kUsage,
                 Text("only root can change that: sudo taskcell-probe delegate --user ",
                      ShellWord(target->name), options.apply ? " --apply" : " --revert"));
  return *std::move(target);
}

Result<Plan> PlanFor(const Target& target) {
  sys::RootedTree tree = TRY(sys::RootedTree::OpenHost());
  return MakePlan(delegate::ReadFacts(tree, target), target);
}

int Show(const Plan& plan, bool json) {
  bool printed = Print(json ? delegate::PlanJson(plan, {}) : delegate::PlanText(plan));
  if (!printed) return kExitUnknown;
  return plan.complete() ? kExitReady : kExitNotReady;
}

// What is left to be done, after what was done, and whether limits hold now.
int ShowApplied(const Plan& made, const Plan& now, bool json) {
  if (!json && !Print(delegate::AppliedText(made, now))) return kExitUnknown;
  Result<delegate::LiveRun> live = delegate::TryLive(now, json);
  if (!live.ok()) return Complain(live.error());
  delegate::Outcome outcome;
  outcome.applied = true;
  if (ParseJson(live->output).ok()) outcome.live = Trim(live->output);
  if (!Print(json ? delegate::PlanJson(now, outcome) : live->output)) return kExitUnknown;
  bool is_own = live->status >= kExitReady && live->status <= kExitUnknown;
  return is_own ? live->status : kExitUnknown;
}

Result<int> ApplyFor(const Target& target, bool json) {
  Plan plan = TRY(PlanFor(target));
  if (plan.steps.empty() && !plan.obstacles.empty()) return Show(plan, json);
  Machine machine = TRY(delegate::OpenThisMachine());
  Status applied = Apply(plan, machine);
  if (!applied.ok())
    return std::move(applied).error().With(
        Text("what was done so far is undone by taskcell-probe delegate --user ",
             ShellWord(target.name), " --revert"));
  return ShowApplied(plan, TRY(PlanFor(target)), json);
}

Result<int> RevertFor(const Target& target, bool json) {
  Machine machine = TRY(delegate::OpenThisMachine());
  delegate::Reverted reverted = TRY(delegate::Revert(target.uid, machine));
  delegate::Outcome outcome;
  outcome.reverted = reverted.was_applied;
  outcome.left = reverted.left;
  bool printed = Print(json ? delegate::PlanJson(TRY(PlanFor(target)), outcome)
                            : delegate::RevertedText(target, outcome));
  if (!printed) return kExitUnknown;
  return reverted.left.empty() ? kExitReady : kExitNotReady;
}

}  // namespace

int DelegateCommand(const DelegateOptions& options) {
  Result<Target> target = FindTarget(options);
  if (!target.ok()) return Complain(target.error());
  if (!options.apply && !options.revert) {
    Result<Plan> plan = PlanFor(target.value());
    return plan.ok() ? Show(plan.value(), options.json) : Complain(plan.error());
  }
  Result<int> status = options.apply ? ApplyFor(target.value(), options.json)
                                     : RevertFor(target.value(), options.json);
  return status.ok() ? status.value() : Complain(status.error());
}

}  // namespace taskcell::probe
