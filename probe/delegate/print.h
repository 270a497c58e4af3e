#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/delegate/plan.h"

namespace taskcell::probe::delegate {

// The plan for a person: a verdict line, then each step with its reason as commands that root's
// shell takes, then what is in the way and what is left to somebody. Every line that is no command
// is a comment to a shell, so that the whole can be pasted.
std::string PlanText(const Plan& plan);

// What came of applying or reverting.
struct Outcome {
  bool applied = false;
  bool reverted = false;
  std::vector<std::string> left;  // of what was to be reverted, and why
  std::string live;               // the JSON of taskcell-probe live as the user, "" where not run
};

// What was done by applying `made`, and what is left to somebody afterwards.
std::string AppliedText(const Plan& made, const Plan& now);

std::string RevertedText(const Target& user, const Outcome& outcome);

// The plan and what came of it as one JSON object (taskcell-probe(1), JSON OF DELEGATE).
std::string PlanJson(const Plan& plan, const Outcome& outcome);

}  // namespace taskcell::probe::delegate
