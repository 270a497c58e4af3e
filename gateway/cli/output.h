#pragma once

#include <unistd.h>

#include <string_view>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {

// Writes one line for a person. A failure is not told: nobody is left to be told.
inline void PutLine(int fd, std::string_view line) { (void)sys::WriteAll(fd, Text(line, "\n")); }

// Writes to standard output what was asked for; false, and told on standard error, where not all of
// it could be written.
inline bool PrintOutput(std::string_view text) {
  Status written = sys::WriteAll(STDOUT_FILENO, text);
  if (!written.ok())
    PutLine(STDERR_FILENO, Text("taskcell: standard output: ", written.error().text));
  return written.ok();
}

}  // namespace taskcell::gateway
