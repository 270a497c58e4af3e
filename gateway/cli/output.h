#pragma once

#include <string_view>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {

// Writes one line. A failure is not told: nobody is left to be told.
inline void PutLine(int fd, std::string_view line) { (void)sys::WriteAll(fd, Text(line, "\n")); }

}  // namespace taskcell::gateway
