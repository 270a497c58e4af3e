#include "gateway/config/task_kind.h"

#include <array>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

struct Row {
  TaskKind kind;
  std::string_view name;
  Coverage coverage;
};

constexpr std::array<Row, 15> kRows = {{
    {TaskKind::kBus, "bus", Coverage::kInCell},
    {TaskKind::kDashboard, "dashboard", Coverage::kInCell},
    {TaskKind::kHeartbeat, "heartbeat", Coverage::kInCell},
    {TaskKind::kAutopilotDelegate, "autopilot_delegate", Coverage::kInCell},
    {TaskKind::kAutopilotRunSkill, "autopilot_run_skill", Coverage::kInCell},
    {TaskKind::kGoalRound, "goal_round", Coverage::kInCell},
    {TaskKind::kPlanStep, "plan_step", Coverage::kInCell},
    {TaskKind::kChannelReply, "channel_reply", Coverage::kOnHost},
    {TaskKind::kCron, "cron", Coverage::kOnHost},
    {TaskKind::kReminder, "reminder", Coverage::kOnHost},
    {TaskKind::kMail, "mail", Coverage::kSkipped},
    {TaskKind::kProactive, "proactive", Coverage::kOnHost},
    {TaskKind::kEphemeral, "ephemeral", Coverage::kOnHost},
    {TaskKind::kAcp, "acp", Coverage::kOnHost},
    {TaskKind::kEval, "eval", Coverage::kOnHost},
}};

const Row& RowOf(TaskKind kind) { return kRows.at(static_cast<std::size_t>(kind)); }

}  // namespace

std::string_view TaskKindName(TaskKind kind) { return RowOf(kind).name; }

Coverage CoverageOf(TaskKind kind) { return RowOf(kind).coverage; }

std::string TaskKindNames() {
  std::string names;
  for (const Row& row : kRows) names += Text(names.empty() ? "" : ", ", row.name);
  return names;
}

Result<TaskKind> ParseTaskKind(std::string_view name) {
  constexpr std::size_t kShown = 64;
  for (const Row& row : kRows)
    if (row.name == name) return row.kind;
  return Error(Kind::kUsage, Text("there is no kind of task `", Printable(name.substr(0, kShown)),
                                  "`; a task is one of ", TaskKindNames()))
      .Coded("unknown_kind");
}

}  // namespace taskcell::gateway
