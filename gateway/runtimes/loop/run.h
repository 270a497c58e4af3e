#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gateway/runtimes/loop/exchange.h"

namespace taskcell::gateway::loop {

inline constexpr std::size_t kMaxCallsPerAnswer = 16;
// So many answers in a row without one call that could be done end the run.
inline constexpr unsigned kMaxUselessAnswers = 3;
// The conversation as JSON. The broker takes bodies of up to 32 MiB.
inline constexpr std::size_t kMaxConversationBytes = 31U << 20U;

struct LoopTask {
  std::string model;
  uint64_t max_turns = 0;  // requests
  std::string prompt;
};

// How the loop reaches the outside. `ask` posts one request body; `tell` takes one event line.
struct LoopPorts {
  std::function<Result<HttpAnswer>(const std::string& request)> ask;
  std::function<Status(const std::string& line)> tell;
};

// Talks with the model until it is done, doing the tool calls it asks for, and tells every step as
// an event in the form claude uses (system, assistant, user, result). True: it ended with a reply.
// An Error only where an event could not be told.
Result<bool> RunLoop(const LoopTask& task, const LoopPorts& ports);

}  // namespace taskcell::gateway::loop
