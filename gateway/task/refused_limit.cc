#include "gateway/task/refused_limit.h"

#include <array>
#include <string>
#include <string_view>

#include "launcher/base/text.h"

namespace taskcell::gateway {

Error NameRefusedLimit(Error error, const cell::Limits& limits) {
  struct Row {
    std::string_view word;
    std::string_view key;
    uint64_t value;
  };
  const std::array<Row, 3> rows = {{{"cpus", "cpu_millis", limits.cpu_millis},
                                    {"memory limit", "memory_bytes", limits.memory_bytes},
                                    {"pids", "pids", limits.pids}}};
  if (error.code != "container_create_failed" && error.code != "container_start_failed")
    return error;
  const std::string said = Lower(error.text);
  for (const Row& row : rows) {
    if (said.find(row.word) == std::string::npos) continue;
    error.text = Text("[container.sandbox] ", row.key, " = ", row.value,
                      " is not what this engine can set, change it: ", error.text);
    return error;
  }
  return error;
}

}  // namespace taskcell::gateway
