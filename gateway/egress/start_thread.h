#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "launcher/base/result.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

// Starts `body` in a thread of its own. std::thread throws where there can be none.
template <typename Body>
Result<std::thread> StartThread(Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return Error(
        Kind::kSystem,
        Text("no further thread can be started (", error.what(),
             "): this user's limit on processes (ulimit -u), the pids limit of a cgroup "
             "(TasksMax= of a systemd unit) or the limit on memory (ulimit -v) is reached. "
             "End something, or let whoever set it raise it"),
        error.code().value());
  }
}

}  // namespace taskcell::gateway
