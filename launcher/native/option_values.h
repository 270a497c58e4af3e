#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/options.h"

namespace taskcell::native {

// The values of taskcell-launch's options that have a form of their own. All pure; every Error is
// kUsage and quotes the value.

// SRC[:DST][:nosymfollow].
BindOption ParseBind(std::string_view text, bool writable);
// DST:SIZE[:exec].
Result<cell::PlannedTmpfs> ParseTmpfs(std::string_view text);
// DST:FD.
Result<FileOption> ParseFile(std::string_view text);
// An id above 0.
Result<uint32_t> ParseId(std::string_view text);
// A descriptor that is none of the standard ones.
Result<int> ParseDescriptor(std::string_view text);
// NAME=VALUE.
Status CheckVariable(std::string_view text);
// The one limit that can be left out.
Status CheckMayBeMissing(std::string_view value);
// A cgroup as in /proc/PID/cgroup, below the mount point of each hierarchy. Returned without the
// slash.
Result<std::string> ParseCgroupParent(std::string_view value);
// A NormalCpuList.
Result<std::string> ParseCpuSet(std::string_view value);
// One that begins as no option does.
Result<std::string> ParseHostname(std::string_view value);
// full | pids: whether /proc shows processes alone.
Result<bool> ParseProc(std::string_view value);

}  // namespace taskcell::native
