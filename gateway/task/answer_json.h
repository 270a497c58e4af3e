#pragma once

#include <string>
#include <string_view>

#include "gateway/task/answer.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// The answer as one JSON object.
std::string AnswerJson(const TaskAnswer& answer);

// The other way round. kViolation when it is none.
Result<TaskAnswer> ParseAnswer(std::string_view json);

}  // namespace taskcell::gateway
