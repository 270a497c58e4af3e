#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::test {

// What cells leave on a host when something goes wrong, one line each: "process 4711 (init)",
// "cgroup /sys/fs/cgroup/...", "mount ...", "container ...", "volume ...", "image ...",
// "directory ...". Sorted.
//
// Processes are those of our programs, and any in a pid namespace of its own that runs with an id
// of a cell of the tests. Containers, volumes and images are those of the tests' private Docker
// engine. A test program linked with this file compares them before and after each of its tests.
std::vector<std::string> CellTraces();

// The cgroups of native cells among them, as paths, sorted.
std::vector<std::string> CellCgroups();

// What is there now and was not in `before` (marked "left: "), and the mounts that are gone ("lost:
// "), as far as it stays so for `patience`: what has just been killed needs a moment to go, and
// what comes and goes is somebody else's.
std::vector<std::string> ChangesSince(const std::vector<std::string>& before,
                                      std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace taskcell::test
