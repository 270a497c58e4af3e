#include "launcher/cell/cpu_list.h"

#include <bitset>

#include "launcher/base/text.h"

namespace taskcell::cell {
namespace {

using Cpus = std::bitset<kMaxCpu + 1>;

bool AddRange(std::string_view range, Cpus& cpus) {
  std::size_t dash = range.find('-');
  std::optional<uint64_t> first = ParseUnsigned(range.substr(0, dash));
  std::optional<uint64_t> last = dash == range.npos ? first : ParseUnsigned(range.substr(dash + 1));
  if (!first || !last || *first > *last || *last > kMaxCpu) return false;
  for (uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.set(cpu);
  return true;
}

}  // namespace

std::optional<std::string> NormalCpuList(std::string_view text) {
  if (text.size() > kMaxCpuListBytes) return std::nullopt;
  Cpus cpus;
  for (std::string_view range : Split(text, ',')) {
    if (!AddRange(range, cpus)) return std::nullopt;
  }
  std::string list;
  for (std::size_t first = 0; first <= kMaxCpu; ++first) {
    if (!cpus[first]) continue;
    std::size_t last = first;
    while (last < kMaxCpu && cpus[last + 1]) ++last;
    list += Text(list.empty() ? "" : ",", first);
    if (last > first) list += Text("-", last);
    first = last;
  }
  if (list.size() > kMaxCpuListBytes) return std::nullopt;
  return list;
}

}  // namespace taskcell::cell
