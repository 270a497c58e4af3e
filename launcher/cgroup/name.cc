#include "launcher/cgroup/name.h"

#include "launcher/base/text.h"

namespace taskcell::cgroup {
namespace {

constexpr std::string_view kPrefix = "run-";
constexpr std::size_t kRunIdDigits = 32;

}  // namespace

std::string RunName(std::string_view run_id) { return Text(kPrefix, run_id); }

bool IsRunName(std::string_view name) {
  if (name.size() != kPrefix.size() + kRunIdDigits || name.substr(0, kPrefix.size()) != kPrefix)
    return false;
  for (char c : name.substr(kPrefix.size())) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

}  // namespace taskcell::cgroup
