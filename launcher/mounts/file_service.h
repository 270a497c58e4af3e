#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/entry.h"

namespace taskcell::mounts {

// What a FileReader asks of its child: one packet, with the directory that `path` is below.
struct FileRequest {
  enum class What : uint8_t {
    kDirectory,  // open it
    kFile,       // read it whole, a regular file only (EINVAL)
    kPlain,      // Judge it as a file of an agent directory, and read it where it is safe
  };
  What what = What::kFile;
  uint64_t max_bytes = 0;            // EFBIG where it has more
  std::array<char, 4096> path = {};  // ends with a NUL; no link is followed
};

struct FileAnswer {
  UniqueFd directory;
  Verdict verdict = Verdict::kSafe;
  std::string text;  // the content; the verdict's note where it is not safe
};

// Does what is asked, without a time limit.
Result<FileAnswer> AnswerRequest(const FileRequest& request, int dir_fd);

// Does so with each request on `socket` until its other end is gone.
Status ServeFiles(int socket);

}  // namespace taskcell::mounts
