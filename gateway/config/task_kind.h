#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// What can start an agent's task. The list is closed: anything else is refused.
enum class TaskKind : uint8_t {
  kBus,                // delegated by another agent, or by a person with `taskcell run`
  kDashboard,          // sent from the dashboard
  kHeartbeat,          // a wake-up that picks work from the task board
  kAutopilotDelegate,  // an autopilot's actions
  kAutopilotRunSkill,
  kGoalRound,  // one round of a goal loop
  kPlanStep,   // one step of a plan
  kChannelReply,
  kCron,
  kReminder,
  kMail,
  kProactive,
  kEphemeral,
  kAcp,
  kEval,
};

// "bus", "autopilot_delegate", ...: what --path, the API and the ledger call it.
std::string_view TaskKindName(TaskKind kind);

// All names, with ", " between them: for messages.
std::string TaskKindNames();

// Error code unknown_kind, naming all there are.
Result<TaskKind> ParseTaskKind(std::string_view name);

// Where a task of an agent whose sandbox is on runs.
enum class Coverage : uint8_t {
  kInCell,
  kOnHost,   // it needs the platform's tools and conversation, which no cell has
  kSkipped,  // nothing runs at all
};
Coverage CoverageOf(TaskKind kind);

}  // namespace taskcell::gateway
