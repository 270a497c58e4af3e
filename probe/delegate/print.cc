#include "probe/delegate/print.h"

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::probe::delegate {
namespace {

std::string Who(const Target& user) { return Text(Printable(user.name), " (uid ", user.uid, ")"); }

std::string Headline(const Plan& plan) {
  std::string user = Who(plan.user);
  if (plan.complete()) return Text(user, ": limits are delegated, there is nothing to do");
  if (plan.steps.empty() && plan.obstacles.empty())
    return Text(user, ": every step is done, and what is left is not for a program to do");
  if (plan.steps.empty()) return Text(user, ": limits are not delegated, and no step here helps");
  return Text(user, ": what makes limits hold here, as root:");
}

void AddStep(std::string& out, const Step& step) {
  out += Text("\n# ", step.what, ": ", step.why, "\n");
  for (const Change& change : step.changes) {
    std::string command = CommandOf(change);
    if (!command.empty()) out += command + "\n";
  }
}

void AddCommands(JsonText& json, std::string_view key, const Step& step,
                 std::string (*line_of)(const Change&)) {
  json.Key(key).Open('[');
  for (const Change& change : step.changes) {
    std::string line = line_of(change);
    if (!line.empty()) json.String(line);
  }
  json.Close(']');
}

void AddStep(JsonText& json, const Step& step) {
  json.Open('{').Key("what").String(step.what).Key("why").String(step.why);
  json.Key("changes").Open('[');
  for (const Change& change : step.changes) {
    json.Open('{').Key("kind").String(Name(change.kind)).Key("path").String(change.path);
    json.Key("content").String(change.text).Close('}');
  }
  json.Close(']');
  AddCommands(json, "commands", step, CommandOf);
  AddCommands(json, "undo", step, UndoOf);
  json.Close('}');
}

}  // namespace

std::string PlanText(const Plan& plan) {
  std::string out = Text("# ", Headline(plan), "\n");
  if (!plan.steps.empty()) out += "umask 022\n";
  for (const Step& step : plan.steps) AddStep(out, step);
  for (const Obstacle& each : plan.obstacles) {
    out += Text("\n# in the way: ", each.reason, "\n");
    if (!each.fix.empty()) out += Text("#   ", each.fix, "\n");
  }
  for (const Note& each : plan.notes)
    out += Text("\n# ", each.pending ? "still to do: " : "", each.text, "\n");
  if (!plan.steps.empty())
    out += Text("\n# all of it at once: taskcell-probe delegate --user ", ShellWord(plan.user.name),
                " --apply (--revert undoes that)\n");
  return out;
}

std::string AppliedText(const Plan& made, const Plan& now) {
  std::string out = Who(made.user);
  if (made.steps.empty()) out += ": there was nothing to do\n";
  if (!made.steps.empty()) out += ": done\n";
  for (const Step& each : made.steps) out += Text("  ", each.what, "\n");
  for (const Obstacle& each : now.obstacles)
    out += Text("in the way: ", each.reason, "\n  ", each.fix, "\n");
  for (const Note& each : now.notes)
    out += Text(each.pending ? "still to do: " : "note: ", each.text, "\n");
  return out + Text("\ntaskcell-probe live as ", Printable(made.user.name), ":\n");
}

std::string RevertedText(const Target& user, const Outcome& outcome) {
  if (!outcome.reverted) return Who(user) + ": nothing was applied, so there is nothing to undo\n";
  if (outcome.left.empty()) return Who(user) + ": undone\n";
  std::string out = Who(user) + ": undone but for this, which can be tried again later:\n";
  for (const std::string& each : outcome.left) out += Text("  ", each, "\n");
  return out;
}

std::string PlanJson(const Plan& plan, const Outcome& outcome) {
  JsonText json;
  json.Open('{').Key("user").Open('{').Key("name").String(plan.user.name);
  json.Key("uid").Unsigned(plan.user.uid).Key("gid").Unsigned(plan.user.gid).Close('}');
  json.Key("hierarchy").String(cgroup::Name(plan.mode)).Key("complete").Bool(plan.complete());
  json.Key("steps").Open('[');
  for (const Step& each : plan.steps) AddStep(json, each);
  json.Close(']').Key("obstacles").Open('[');
  for (const Obstacle& each : plan.obstacles)
    json.Open('{')
        .Key("reason")
        .String(each.reason)
        .Key("who")
        .String(cgroup::Name(each.who))
        .Key("fix")
        .String(each.fix)
        .Close('}');
  json.Close(']').Key("notes").Open('[');
  for (const Note& each : plan.notes)
    json.Open('{').Key("text").String(each.text).Key("pending").Bool(each.pending).Close('}');
  json.Close(']').Key("applied").Bool(outcome.applied).Key("reverted").Bool(outcome.reverted);
  json.Key("left").Open('[');
  for (const std::string& each : outcome.left) json.String(each);
  json.Close(']').Key("live");
  if (outcome.live.empty())
    json.Null();
  else
    json.Raw(outcome.live);
  return json.Close('}').text() + "\n";
}

}  // namespace taskcell::probe::delegate
