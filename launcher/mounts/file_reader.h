#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/entry.h"
#include "launcher/mounts/file_service.h"
#include "launcher/sys/process.h"

namespace taskcell::mounts {

// How long one file may take to be read.
inline constexpr std::chrono::milliseconds kReadTimeLimit{5'000};

// Reads small files that others may write, in a time limit that holds whatever their file system
// and its other users do: in a child process, which is left behind where it hangs. Any thread may
// ask; one is answered at a time.
class FileReader {
 public:
  // By the program at `launcher` (an absolute path of taskcell-launch), started when first asked.
  // Without one in this process itself, and without a time limit.
  explicit FileReader(std::string launcher = {}, std::chrono::milliseconds limit = kReadTimeLimit)
      : launcher_(std::move(launcher)), limit_(limit) {}

  // Each is an Error with ETIMEDOUT past the limit, else what the plain function says. No link is
  // followed.
  Result<UniqueFd> OpenDirectory(int dir_fd, const std::string& path);
  // Whole, a regular file only (EINVAL); EFBIG where it has more than `max_bytes`.
  Result<std::string> Read(int dir_fd, const std::string& path, std::size_t max_bytes);
  // What Judge says of the file `name`, and its content where it is safe.
  struct Judged {
    Verdict verdict = Verdict::kAbsent;
    std::string note;
    std::string content;
  };
  Result<Judged> ReadPlain(int dir_fd, const std::string& name, std::size_t max_bytes);

 private:
  Result<FileAnswer> Ask(const FileRequest& request, int dir_fd);
  Status Start();
  Error Gone(Error error);

  const std::string launcher_;
  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  sys::Child child_;
  UniqueFd socket_;
};

}  // namespace taskcell::mounts
