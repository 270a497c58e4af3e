#include "gateway/intake/bus_file.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "gateway/ledger/lock_file.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/sync.h"

namespace taskcell::gateway {
namespace {

constexpr char kLockFile[] = "bus_queue.jsonl.lock";
constexpr char kNewFile[] = "bus_queue.jsonl.tmp";
constexpr std::chrono::milliseconds kLockWait{5000};

BusFile::Stamp StampOf(const struct stat& info) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {info.st_ino, info.st_size, info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

// Opens the file, or an invalid descriptor where there is none.
Result<UniqueFd> OpenBus(const Home& home, int flags) {
  constexpr int kAlways = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Result<UniqueFd> file = sys::OpenAt2(home.fd.get(), kBusFile, flags | kAlways,
                                       sys::kResolveBeneath, (flags & O_CREAT) != 0 ? 0600 : 0);
  if (!file.ok() && file.error().err == ENOENT) return UniqueFd();
  return file;
}

bool IsWhole(std::string_view line) {
  Result<JsonValue> value = ParseJson(line);
  return value.ok() && value->is_object();
}

}  // namespace

Result<BusFile::Stamp> BusFile::Look(const Home& home) {
  Result<struct stat> info = sys::StatAt(home.fd.get(), kBusFile);
  if (info.ok()) return StampOf(info.value());
  if (info.error().err == ENOENT) return Stamp();
  return std::move(info).error();
}

Result<BusFile> BusFile::Open(const Home& home) {
  BusFile bus(home, TRY(OpenLocked(home.fd.get(), kLockFile, kLockWait)));
  bus.file_ = TRY(OpenBus(home, O_RDONLY));
  if (!bus.file_.valid()) return bus;
  const struct stat info = TRY(sys::Stat(bus.file_.get()));
  if (!S_ISREG(info.st_mode))
    return Error(Kind::kConfig, Text(kBusFile, " is not a regular file; move it away"));
  Result<std::string> text = sys::ReadAll(bus.file_.get(), kMaxBusBytes);
  if (!text.ok() && text.error().kind == Kind::kViolation)
    return Error(Kind::kConfig, Text(kBusFile, " has more than ", kMaxBusBytes,
                                     " bytes: nothing is taken from it or written to it; move it "
                                     "away, or remove what nobody waits for"));
  if (!text.ok()) return std::move(text).error();
  bus.stamp_ = StampOf(info);
  // More may have come since the look at it.
  bus.stamp_.size = static_cast<int64_t>(text->size());
  constexpr mode_t kPermissions = 0777;
  bus.mode_ = info.st_mode & kPermissions;
  bus.ends_with_newline_ = text->empty() || text->back() == '\n';
  std::vector<std::string_view> lines = Split(text.value(), '\n');
  if (!IsWhole(lines.back())) {
    bus.rest_ = lines.back();
    lines.pop_back();
  }
  for (std::string_view line : lines)
    if (!Trim(line).empty()) bus.lines_.emplace_back(line);
  return bus;
}

Result<bool> BusFile::Replace(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += Text(line, "\n");
  text += rest_;
  Status old = sys::RemoveFile(home_->fd.get(), kNewFile);
  if (!old.ok() && old.error().err != ENOENT) return std::move(old).error();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  UniqueFd fresh = TRY(sys::OpenAt2(home_->fd.get(), kNewFile, kFlags, sys::kResolveBeneath, 0600));
  TRY(sys::ChangeMode(fresh.get(), mode_));
  TRY(sys::WriteAll(fresh.get(), text).With(kNewFile));
  TRY(sys::Synchronize(fresh.get()));
  const Stamp now = TRY(Look(*home_));
  if (now.inode != stamp_.inode || now.size != stamp_.size) return false;
  TRY(sys::Rename(home_->fd.get(), kNewFile, kBusFile));
  replaced_ = Replaced{std::move(file_), stamp_.size};
  file_ = std::move(fresh);
  stamp_ = TRY(Look(*home_));
  lines_ = lines;
  ends_with_newline_ = rest_.empty();
  return true;
}

Status BusFile::Append(const std::string& text) {
  UniqueFd file = TRY(OpenBus(*home_, O_WRONLY | O_APPEND | O_CREAT));
  return sys::WriteAll(file.get(), Text(ends_with_newline_ ? "" : "\n", text)).With(kBusFile);
}

Result<std::string> ReadLate(const BusFile::Replaced& replaced) {
  std::string late;
  if (!replaced.file.valid()) return late;
  std::array<char, 16384> chunk;
  while (late.size() < kMaxBusBytes) {
    const std::size_t got = TRY(
        sys::ReadAt(replaced.file.get(), chunk, replaced.size + static_cast<int64_t>(late.size())));
    if (got == 0) break;
    late.append(chunk.data(), got);
  }
  return late;
}

}  // namespace taskcell::gateway
