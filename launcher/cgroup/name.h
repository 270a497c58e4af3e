#pragma once

#include <string>
#include <string_view>

namespace taskcell::cgroup {

// Below its limiting cgroup `run-<run id>` a native cell's processes live in this one.
inline constexpr char kCellName[] = "cell";

std::string RunName(std::string_view run_id);

// True for "run-" and 32 lowercase hex digits. Pure.
bool IsRunName(std::string_view name);

}  // namespace taskcell::cgroup
