#include "gateway/cli/table.h"

#include <algorithm>
#include <chrono>

#include "gateway/ledger/audit.h"

namespace taskcell::gateway {
namespace {

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// One line of a table whose last column is as wide as it likes.
std::string Row(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += i + 1 == cells.size() ? cells[i] : Padded(cells[i], widths[i]) + "  ";
  return line;
}

}  // namespace

std::string TableOf(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const std::vector<std::string>& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string table;
  for (const std::vector<std::string>& row : rows) table += Row(row, widths) + "\n";
  return table;
}

std::string TimeText(int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  constexpr std::size_t kToSeconds = 19;
  const std::string text = Rfc3339(MomentOf(std::chrono::milliseconds(unix_ms)));
  return text.substr(0, kToSeconds) + "Z";
}

}  // namespace taskcell::gateway
