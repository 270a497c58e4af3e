#pragma once

#include <string>

#include "gateway/task/answer.h"

namespace taskcell::gateway {

// Prints what a task came to and returns the exit status. Standard output gets the reply only, or
// one JSON object; what a person should know goes to standard error, with the home's path (where
// not empty) after a failure.
int PrintAnswer(const TaskAnswer& answer, bool json, const std::string& home_path);

}  // namespace taskcell::gateway
