#include "gateway/ledger/owner.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/snapshot_record.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxStatBytes = 4096;

// The state and the start time of a process, fields 3 and 22 of its stat file. The name before them
// may hold spaces and parentheses, so they are counted from its end.
struct Life {
  std::string state;
  std::string start;
};
Result<Life> LifeOf(std::string_view pid) {
  constexpr std::size_t kState = 0;
  constexpr std::size_t kStart = 19;
  std::string stat = TRY(sys::ReadFile(AT_FDCWD, Text("/proc/", pid, "/stat"), kMaxStatBytes));
  std::size_t name_end = stat.rfind(')');
  std::vector<std::string_view> fields;
  if (name_end != std::string::npos) fields = Words(std::string_view(stat).substr(name_end + 1));
  if (fields.size() <= kStart)
    return Error(Kind::kSystem, Text("/proc/", pid, "/stat makes no sense"));
  return Life{std::string(fields[kState]), std::string(fields[kStart])};
}

}  // namespace

Result<std::string> OwnerOfThisProcess() {
  const std::string pid = std::to_string(::getpid());
  Life life = TRY(LifeOf(pid));
  return Text(pid, " ", life.start, " ", TRY(mounts::BootId()));
}

bool IsOwnerAlive(std::string_view owner) {
  std::vector<std::string_view> parts = Words(owner);
  if (parts.size() != 3 || !ParseUnsigned(parts[0]).has_value()) return true;
  Result<std::string> boot = mounts::BootId();
  if (!boot.ok()) return true;
  if (boot.value() != parts[2]) return false;
  Result<Life> life = LifeOf(parts[0]);
  if (!life.ok()) return life.error().err != ENOENT && life.error().err != ESRCH;
  return life->start == parts[1] && life->state != "Z" && life->state != "X";
}

}  // namespace taskcell::gateway
