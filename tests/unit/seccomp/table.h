#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seccomp/default_filter.h"

namespace taskcell::seccomp {

// One row of a table in tests/data/seccomp: this call must get this answer from the filter of this
// architecture.
struct Row {
  std::string text;  // "line 12: x86_64 mount -> errno EPERM"
  Architecture filter;
  seccomp_data call;
  uint32_t action;
};

// Reads rows from `text`; a malformed line gives nothing and its text in `error`.
std::optional<std::vector<Row>> ParseTable(std::string_view text, std::string& error);

// Reads tests/data/seccomp/<name> whole.
std::string ReadData(const std::string& name);

}  // namespace taskcell::seccomp
