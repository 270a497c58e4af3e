#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::init {

// What the witness reports on its pipe: its findings, then nothing but the end of the pipe once it
// executed the job; or, at any time, that a step failed. The first byte tells which.
inline constexpr char kRefusalReport = 'R';   // EncodeRefusal; the end of the pipe follows
inline constexpr char kFindingsReport = 'W';  // at most PIPE_BUF bytes, written in one piece

// The Error in a report that starts with kRefusalReport: its text starts with "<stage>: ", its err
// is the child's.
Error RefusalIn(std::string_view report);

// Reads one report, at most kMaxReportBytes and `timeout_ms`; empty: the pipe's end. Past the time
// it is an Error with ETIMEDOUT.
inline constexpr std::size_t kMaxReportBytes = 64U << 10U;
Result<std::string> ReadReport(int report_fd, int timeout_ms);

}  // namespace taskcell::init
