#include "launcher/cgroup/io_weight.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/sys/file.h"

namespace taskcell::cgroup {
namespace {

constexpr std::size_t kMaxDisks = 4096;

bool Exists(int directory_fd, const std::string& path) {
  return sys::StatAt(directory_fd, path).ok();
}

Result<bool> SomeDiskHasBfq() {
  UniqueFd disks = TRY(sys::Open("/sys/block", O_RDONLY | O_DIRECTORY));
  for (const sys::DirectoryEntry& disk : TRY(sys::ListDirectory(disks.get(), kMaxDisks))) {
    // A disk that goes away meanwhile has no scheduler.
    Result<std::string> scheduler = sys::ReadFile(
        AT_FDCWD, Text("/sys/block/", disk.name, "/queue/scheduler"), kMaxRecordBytes);
    if (scheduler.ok() && IsScheduledByBfq(scheduler.value())) return true;
  }
  return false;
}

// Only the root of the hierarchy has the file.
Result<bool> SomeDiskHasCost() {
  Result<std::string> qos = sys::ReadFile(AT_FDCWD, "/sys/fs/cgroup/io.cost.qos", kMaxRecordBytes);
  return qos.ok() && IsSharedByCost(qos.value());
}

Status Write(int cgroup_fd, const std::string& file, uint64_t weight) {
  TRY(sys::WriteControl(cgroup_fd, file, Text(weight)));
  std::optional<std::string> text = TRY(ReadRecord(cgroup_fd, file));
  if (text && ParseIoWeight(*text) == weight) return Ok();
  return Error(Kind::kUnsupported, Text(file, " was set to ", weight, " but reads '",
                                        text ? Printable(*text) : "nothing", "'"));
}

}  // namespace

bool IsScheduledByBfq(std::string_view scheduler) {
  return scheduler.find("[bfq]") != scheduler.npos;
}

bool IsSharedByCost(std::string_view qos) {
  std::vector<std::string_view> words = Words(qos);
  return std::find(words.begin(), words.end(), "enable=1") != words.end();
}

std::optional<uint64_t> ParseIoWeight(std::string_view text) {
  std::vector<std::string_view> words = Words(text);
  if (!words.empty() && words[0] == "default") words.erase(words.begin());
  return words.empty() ? std::nullopt : ParseUnsigned(words[0]);
}

Result<std::optional<uint64_t>> ReadIoWeight(int directory_fd, const std::string& prefix,
                                             bool unified) {
  for (const char* file : {unified ? kBfqWeightV2 : kBfqWeightV1, kCostWeightV2}) {
    std::optional<std::string> text = TRY(ReadRecord(directory_fd, prefix + file));
    if (!text) continue;
    std::optional<uint64_t> weight = ParseIoWeight(*text);
    if (weight) return weight;
    return Error(Kind::kViolation,
                 Text(file, " holds '", Printable(*text), "', which is no weight"));
  }
  return std::optional<uint64_t>();
}

Status ApplyIoWeight(int cgroup_fd, bool unified, uint64_t weight) {
  bool enforced = false;
  const char* bfq = unified ? kBfqWeightV2 : kBfqWeightV1;
  if (Exists(cgroup_fd, bfq)) {
    TRY(Write(cgroup_fd, bfq, weight));
    enforced = TRY(SomeDiskHasBfq());
  }
  if (unified && Exists(cgroup_fd, kCostWeightV2)) {
    TRY(Write(cgroup_fd, kCostWeightV2, weight));
    enforced = enforced || TRY(SomeDiskHasCost());
  }
  if (enforced) return Ok();
  return Error(Kind::kUnsupported,
               "no disk of this host shares its time out by weight, so it would mean nothing: the "
               "administrator can have one do so (echo bfq > /sys/block/DISK/queue/scheduler)");
}

}  // namespace taskcell::cgroup
