#include "launcher/cgroup/directory.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::cgroup {

Result<UniqueFd> OpenMount(const Hierarchy& hierarchy) {
  UniqueFd fd = TRY(sys::Open(hierarchy.mount_point, O_RDONLY | O_DIRECTORY));
  struct stat info = TRY(sys::Stat(fd.get()));
  if (major(info.st_dev) == hierarchy.major && minor(info.st_dev) == hierarchy.minor) return fd;
  return Error(Kind::kDenied, Text("'", Printable(hierarchy.mount_point),
                                   "' is not the cgroup hierarchy that /proc/self/mountinfo names: "
                                   "something is mounted over it"));
}

Result<UniqueFd> OpenCgroup(int directory_fd, const std::string& below) {
  return sys::OpenAt2(directory_fd, below.empty() ? "." : below, O_RDONLY | O_DIRECTORY,
                      sys::kResolveBeneath | RESOLVE_NO_XDEV);
}

Result<std::string> ReadControl(int directory_fd, const std::string& name) {
  std::string text = TRY(sys::ReadFile(directory_fd, name, kMaxControlFileBytes));
  return std::string(Trim(text));
}

Result<std::optional<UniqueFd>> OpenRecord(int directory_fd, const std::string& path) {
  Result<UniqueFd> fd = sys::OpenAt2(directory_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY,
                                     sys::kResolveBeneath | RESOLVE_NO_XDEV);
  if (fd.ok()) return std::optional<UniqueFd>(std::move(fd).value());
  if (fd.error().err == ENOENT) return std::optional<UniqueFd>();
  return std::move(fd).error();
}

Result<std::string> ReadRecord(int fd) {
  std::array<char, kMaxRecordBytes + 1> buffer;
  std::size_t got = TRY(sys::ReadAt(fd, buffer, 0));
  if (got == buffer.size())
    return Error(Kind::kViolation, Text("more than ", kMaxRecordBytes, " bytes"), EFBIG);
  return std::string(Trim({buffer.data(), got}));
}

Result<std::optional<std::string>> ReadRecord(int directory_fd, const std::string& path) {
  std::optional<UniqueFd> fd = TRY(OpenRecord(directory_fd, path));
  if (!fd) return std::optional<std::string>();
  return std::optional<std::string>(TRY(ReadRecord(fd->get()).With(Printable(path))));
}

std::optional<uint64_t> ValueOf(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 2 && words[0] == key) return ParseUnsigned(words[1]);
  }
  return std::nullopt;
}

}  // namespace taskcell::cgroup
