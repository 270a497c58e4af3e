// /proc/<pid>/cgroup and mountinfo, divided by the first NUL byte.
#include "launcher/base/mount_info.h"
#include "launcher/cgroup/layout.h"
#include "launcher/cgroup/limits.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  std::string_view memberships = input.substr(0, input.find('\0'));
  std::string_view mounts = input.substr(std::min(memberships.size() + 1, input.size()));
  Result<std::vector<MountInfoLine>> lines = ParseMountInfo(mounts);
  Result<cgroup::Layout> layout = cgroup::ParseLayout(memberships, mounts);
  if (layout.ok()) {
    fuzz::Require(lines.ok());
    for (const cgroup::Hierarchy& each : layout->hierarchies) {
      (void)cgroup::BelowMount(each, each.own_path);  // only that it ends
    }
  }
  (void)cgroup::ParseLimit(input);  // only that it ends
  return 0;
}
