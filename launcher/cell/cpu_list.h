#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace taskcell::cell {

inline constexpr unsigned kMaxCpu = 8191;  // CONFIG_NR_CPUS is nowhere larger
inline constexpr std::size_t kMaxCpuListBytes = 4096;

// A list of processors, such as "3,0-1", the way the kernel writes it: in order, what follows
// one another as a range, each once ("0-1,3"). Nothing where `text` is no such list, is empty,
// names a processor above kMaxCpu or has more than kMaxCpuListBytes. Pure.
std::optional<std::string> NormalCpuList(std::string_view text);

}  // namespace taskcell::cell
