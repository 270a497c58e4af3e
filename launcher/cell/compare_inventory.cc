#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cell/compare_parts.h"

namespace taskcell::cell {
namespace {

// The devices of a cell, the same on every engine. Numbers from the kernel's
// Documentation/admin-guide/devices.txt.
struct PlannedDevice {
  std::string_view path;
  unsigned major;
  unsigned minor;
};
constexpr PlannedDevice kDevices[] = {
    {"/dev/null", 1, 3},    {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8},
    {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},  {"/dev/ptmx", 5, 2}, {"/dev/pts/ptmx", 5, 2},
};

bool IsPlanned(const DeviceSeen& device) {
  return S_ISCHR(device.mode) &&
         std::any_of(std::begin(kDevices), std::end(kDevices), [&](auto& each) {
           return device.path == each.path && device.number == makedev(each.major, each.minor);
         });
}

}  // namespace

void CompareInventory(const InsideAttestation& seen, Mismatches& found) {
  for (const ProcessSeen& process : seen.processes) {
    found.Add(Text("process:", process.pid), "none but process 1",
              process.name.empty() ? "one that had ended" : Printable(process.name));
  }
  for (const DeviceSeen& device : seen.devices) {
    if (IsPlanned(device)) continue;
    found.Add(Text("device:", Printable(device.path)), "none but the harmless ones",
              Text(S_ISCHR(device.mode) ? "character" : "block", " device ", major(device.number),
                   ":", minor(device.number)));
  }
}

}  // namespace taskcell::cell
