#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::init {

// The Error in a report that starts with kRefusalReport: its text starts with "<stage>: ", its err
// is the child's.
Error RefusalIn(std::string_view report);

// Reads what a confined child reports, until it closes the pipe (by exec or death), at most
// kMaxReportBytes and `timeout_ms`. Past the time it is an Error with ETIMEDOUT.
inline constexpr std::size_t kMaxReportBytes = 64U << 10U;
Result<std::string> ReadReport(int report_fd, int timeout_ms);

}  // namespace taskcell::init
