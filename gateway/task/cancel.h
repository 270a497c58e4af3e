#pragma once

#include "gateway/task/answer.h"
#include "gateway/task/task.h"
#include "launcher/base/error.h"

namespace taskcell::gateway {

// Whether the caller has asked for the task's end, by a descriptor as in Surroundings.
bool IsCancelled(int cancel_fd);
bool IsCancelled(const Surroundings& surroundings);

// What a task that was asked to end comes to.
Error Stopped();

// Of what went wrong after somebody asked for the end, that is the cause.
TaskAnswer AnswerForFault(const Error& error, const Surroundings& surroundings);

}  // namespace taskcell::gateway
