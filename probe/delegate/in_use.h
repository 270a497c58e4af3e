#pragma once

#include <string>
#include <string_view>

namespace taskcell::probe::delegate {

// Why a cgroup or another directory could not be removed, fit to print: the processes in it and
// below, else the entries.
std::string WhatIsIn(int root_fd, const std::string& path);

// The processes in a cgroup and below it, but for those of a service manager itself and of the bus
// it serves; "" where there is none. Absolute paths below `root_fd`.
std::string ProcessesIn(int root_fd, const std::string& path);

// The name of a cgroup in `directory_fd` that has a limit set by one of the controllers (words);
// "" where none has. Where it cannot be known that is said in place of a name.
std::string LimitedBelow(int directory_fd, std::string_view controllers);

}  // namespace taskcell::probe::delegate
