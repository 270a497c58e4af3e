#include <fcntl.h>
#include <linux/magic.h>

#include <optional>

#include "launcher/base/text.h"
#include "launcher/init/attest.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::init {
namespace {

using cell::LimitsSeen;

constexpr std::size_t kMaxLimitBytes = 4096;  // a list of processors is the longest

// The raw text of each limit file, before anything is made of it.
struct Texts {
  std::optional<std::string> memory, memsw, swap, pids, cpu_quota, cpu_period, cpu_max, cpu_set,
      io_weight;
};

std::optional<std::string>& Field(Texts& texts, std::string_view name) {
  if (name == "memory") return texts.memory;
  if (name == "memsw") return texts.memsw;
  if (name == "swap") return texts.swap;
  if (name == "pids") return texts.pids;
  if (name == "cpu_quota") return texts.cpu_quota;
  if (name == "cpu_period") return texts.cpu_period;
  if (name == "cpu_set") return texts.cpu_set;
  if (name == "io_weight") return texts.io_weight;
  return texts.cpu_max;
}

// "max", a negative quota and what v1 has in place of "max" (the highest number of pages) are
// unlimited.
Result<uint64_t> ParseLimit(std::string_view text) {
  constexpr uint64_t kUnlimitedFrom = uint64_t{1} << 62U;
  std::string_view word = Trim(text);
  if (word == "max" || word == "-1") return LimitsSeen::kUnlimited;
  std::optional<uint64_t> number = ParseUnsigned(word);
  if (!number) {
    return Error(Kind::kViolation, Text("a limit file holds '", Printable(word), "'"));
  }
  return *number >= kUnlimitedFrom ? LimitsSeen::kUnlimited : *number;
}

Status Set(std::optional<uint64_t>& limit, const std::optional<std::string>& text) {
  if (text) limit = TRY(ParseLimit(*text));
  return Ok();
}

// v2 limits swap on its own, v1 memory and swap together.
Status SetMemoryAndSwap(LimitsSeen& limits, const Texts& texts) {
  TRY(Set(limits.memory_and_swap_bytes, texts.memsw));
  if (!texts.swap || !limits.memory_bytes) return Ok();
  uint64_t swap = TRY(ParseLimit(*texts.swap));
  bool unlimited = swap == LimitsSeen::kUnlimited || *limits.memory_bytes == LimitsSeen::kUnlimited;
  limits.memory_and_swap_bytes = unlimited ? LimitsSeen::kUnlimited : *limits.memory_bytes + swap;
  return Ok();
}

// cpu.max of v2: "max 100000" or "50000 100000".
Status SetCpuMax(LimitsSeen& limits, const std::optional<std::string>& text) {
  if (!text) return Ok();
  std::vector<std::string_view> words = Words(*text);
  if (words.size() != 2) {
    return Error(Kind::kViolation, Text("cpu.max holds '", Printable(Trim(*text)), "'"));
  }
  limits.cpu_quota_us = TRY(ParseLimit(words[0]));
  limits.cpu_period_us = TRY(ParseLimit(words[1]));
  return Ok();
}

// "100", or "default 100" and lines for single disks.
Status SetIoWeight(LimitsSeen& limits, const std::optional<std::string>& text) {
  if (!text) return Ok();
  std::vector<std::string_view> words = Words(*text);
  if (!words.empty() && words[0] == "default") words.erase(words.begin());
  if (words.empty()) return Error(Kind::kViolation, "a file for the io weight is empty");
  limits.io_weight = TRY(ParseLimit(words[0]));
  return Ok();
}

Result<LimitsSeen> FromTexts(const Texts& texts) {
  LimitsSeen limits;
  TRY(Set(limits.memory_bytes, texts.memory));
  TRY(SetMemoryAndSwap(limits, texts));
  TRY(Set(limits.pids, texts.pids));
  TRY(Set(limits.cpu_quota_us, texts.cpu_quota));
  TRY(Set(limits.cpu_period_us, texts.cpu_period));
  TRY(SetCpuMax(limits, texts.cpu_max));
  TRY(SetIoWeight(limits, texts.io_weight));
  if (texts.cpu_set) limits.cpu_set = Trim(*texts.cpu_set);
  return limits;
}

// A file that is not there leaves its text empty.
void ReadInto(std::optional<std::string>& text, const std::string& path) {
  Result<std::string> content = sys::ReadFile(AT_FDCWD, path, kMaxLimitBytes);
  if (content.ok()) text = std::move(content).value();
}

Texts ReadUnified(const std::string& root) {
  Texts texts;
  ReadInto(texts.memory, root + "/memory.max");
  ReadInto(texts.swap, root + "/memory.swap.max");
  ReadInto(texts.pids, root + "/pids.max");
  ReadInto(texts.cpu_max, root + "/cpu.max");
  return texts;
}

Texts ReadVersion1(const std::string& root) {
  Texts texts;
  ReadInto(texts.memory, root + "/memory/memory.limit_in_bytes");
  ReadInto(texts.memsw, root + "/memory/memory.memsw.limit_in_bytes");
  ReadInto(texts.pids, root + "/pids/pids.max");
  for (const char* cpu : {"/cpu", "/cpu,cpuacct"}) {
    if (texts.cpu_quota) break;
    ReadInto(texts.cpu_quota, root + cpu + "/cpu.cfs_quota_us");
    ReadInto(texts.cpu_period, root + cpu + "/cpu.cfs_period_us");
  }
  return texts;
}

bool IsUnified(const std::string& root) {
  Result<UniqueFd> directory = sys::Open(root, O_PATH | O_DIRECTORY);
  if (!directory.ok()) return false;
  Result<sys::FileSystem> file_system = sys::FileSystemOf(directory->get());
  return file_system.ok() && file_system->type == CGROUP2_SUPER_MAGIC;
}

}  // namespace

Result<LimitsSeen> ReadLimits(std::span<const LimitDescriptor> descriptors,
                              const std::string& cgroup_root) {
  if (descriptors.empty()) {
    return FromTexts(IsUnified(cgroup_root) ? ReadUnified(cgroup_root) : ReadVersion1(cgroup_root));
  }
  Texts texts;
  for (const LimitDescriptor& each : descriptors) {
    Field(texts, each.name) = TRY(sys::ReadAll(each.fd, kMaxLimitBytes).With(each.name));
  }
  return FromTexts(texts);
}

}  // namespace taskcell::init
