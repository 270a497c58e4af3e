#include "probe/live/quantity.h"

#include <cstring>
#include <iterator>

#include "launcher/base/text.h"

namespace taskcell::live {

std::string ShowBytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {" B", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  uint64_t scale = 1;
  while (unit + 1 < std::size(kUnits) && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  uint64_t tenths = bytes % scale * 10 / scale;
  std::string fraction = tenths == 0 ? "" : Text('.', tenths);
  return Text(bytes / scale, fraction, kUnits[unit]);
}

std::string ShowCpuMillis(uint64_t cpu_millis) {
  std::string text = Text(cpu_millis / 1000);
  std::string thousandths = Text(1000 + cpu_millis % 1000).substr(1);
  while (!thousandths.empty() && thousandths.back() == '0') thousandths.pop_back();
  return thousandths.empty() ? text : Text(text, '.', thousandths);
}

std::string ErrnoName(int32_t err) {
  const char* name = ::strerrorname_np(err);
  return name != nullptr ? name : Text("errno ", err);
}

}  // namespace taskcell::live
