#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taskcell::test {

// What is known of where a text stands in one process's memory.
struct Places {
  std::vector<std::string> guarded;    // locked, and in no core dump
  std::vector<std::string> elsewhere;  // with what stands around it
  std::size_t bytes = 0;               // that were searched
};

// Searches all memory of a process that its root may read, its command line and environment
// included. Of one that has ended nothing is read.
Places SearchMemory(pid_t pid, std::string_view text);

// A process, and all that it and they have started.
std::vector<pid_t> WithDescendants(pid_t pid);

// The first of them whose last argument is `last`.
std::optional<pid_t> FindDescendant(pid_t pid, std::string_view last);

}  // namespace taskcell::test
