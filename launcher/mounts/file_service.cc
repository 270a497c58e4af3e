#include "launcher/mounts/file_service.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "launcher/mounts/child_work.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::mounts {
namespace {

Result<std::string> ReadRegular(int dir_fd, const std::string& path, std::size_t max_bytes) {
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  UniqueFd file = TRY(sys::OpenAt2(dir_fd, path, kFlags, sys::kResolveBeneath));
  if (!S_ISREG(TRY(sys::Stat(file.get())).st_mode))
    return Error(Kind::kConfig, "it is not a regular file", EINVAL);
  return sys::ReadAll(file.get(), max_bytes);
}

// What the agent directory's own rule allows goes by its listed name, as in a snapshot.
Result<Finding> JudgePlain(int dir_fd, const std::string& name) {
  for (const AllowedEntry& allowed : kAgentEntries) {
    if (allowed.name != name || allowed.kind != cell::EntryKind::kFile) continue;
    const std::set<std::string_view> listed = TRY(ListedEntries(dir_fd));
    return JudgeAllowed(dir_fd, allowed, listed);
  }
  return Judge(dir_fd, name, cell::EntryKind::kFile);
}

Result<WorkResult> Serve(const FileRequest& request, int dir_fd) {
  FileAnswer answer = TRY(AnswerRequest(request, dir_fd));
  WorkResult result;
  result.bytes = static_cast<char>(answer.verdict) + answer.text;
  if (answer.directory.valid()) result.passed.push_back(std::move(answer.directory));
  return result;
}

}  // namespace

Result<FileAnswer> AnswerRequest(const FileRequest& request, int dir_fd) {
  const std::string path(request.path.data(), ::strnlen(request.path.data(), request.path.size()));
  FileAnswer answer;
  switch (request.what) {
    case FileRequest::What::kDirectory:
      answer.directory = TRY(
          sys::OpenAt2(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, sys::kResolveBeneath));
      return answer;
    case FileRequest::What::kFile:
      answer.text = TRY(ReadRegular(dir_fd, path, request.max_bytes));
      return answer;
    case FileRequest::What::kPlain:
      break;
  }
  Finding finding = TRY(JudgePlain(dir_fd, path));
  answer.verdict = finding.verdict;
  answer.text = std::move(finding.note);
  if (answer.verdict == Verdict::kSafe)
    answer.text = TRY(sys::ReadAll(finding.fd.get(), request.max_bytes));
  return answer;
}

Status ServeFiles(int socket) {
  while (true) {
    FileRequest request;
    const std::span<char> bytes(reinterpret_cast<char*>(&request), sizeof request);
    std::vector<UniqueFd> passed;
    const std::size_t got = TRY(sys::ReceiveDescriptors(socket, bytes, passed));
    if (got == 0) return Ok();
    if (got != sizeof request || passed.size() != 1)
      return Error(Kind::kUsage, "--files-fd: what came is no request");
    TRY(SendWork(socket, Serve(request, passed.front().get())));
  }
}

}  // namespace taskcell::mounts
