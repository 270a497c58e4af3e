#include "gateway/cli/find_task.h"

#include <limits>
#include <optional>

#include "launcher/base/text.h"

namespace taskcell::gateway {

Result<TaskRow> FindTask(Ledger& ledger, const std::string& id) {
  std::optional<TaskRow> found;
  for (TaskRow& task : TRY(ledger.Tasks(std::numeric_limits<int64_t>::max()))) {
    if (id.empty() || !task.id.starts_with(id)) continue;
    if (found.has_value())
      return Error(Kind::kSystem, Text("more than one task begins with ", Printable(id)));
    found = std::move(task);
  }
  if (found.has_value()) return *std::move(found);
  return Error(Kind::kSystem, Text("there is no task ", Printable(id),
                                   " in this home's ledger (taskcell ps --all lists them)"));
}

}  // namespace taskcell::gateway
