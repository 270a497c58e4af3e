#include "launcher/mounts/file_reader.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/child_work.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/spawn.h"

namespace taskcell::mounts {
namespace {

constexpr int kSocketNumber = 3;

Result<FileRequest> RequestFor(FileRequest::What what, const std::string& path,
                               std::size_t max_bytes) {
  FileRequest request;
  request.what = what;
  request.max_bytes = max_bytes;
  if (path.size() >= request.path.size())
    return Error(Kind::kUsage, Text("'", Printable(path), "' is too long"), ENAMETOOLONG);
  std::memcpy(request.path.data(), path.data(), path.size());
  return request;
}

}  // namespace

Status FileReader::Start() {
  sys::SocketPair pair = TRY(sys::MakePacketPair());
  const sys::PassedDescriptor passed = {pair.second.get(), kSocketNumber};
  child_ = TRY(sys::SpawnProgram(launcher_,
                                 {"taskcell-launch", "--files-fd", std::to_string(kSocketNumber)},
                                 {}, {&passed, 1}));
  socket_ = std::move(pair.first);
  return Ok();
}

// The next request starts another.
Error FileReader::Gone(Error error) {
  socket_.Reset();
  child_ = sys::Child();
  return std::move(error).With(launcher_);
}

Result<FileAnswer> FileReader::Ask(const FileRequest& request, int dir_fd) {
  if (launcher_.empty()) return AnswerRequest(request, dir_fd);
  std::scoped_lock lock(mutex_);
  // One that was there may have been killed since.
  if (!child_.valid() || TRY(sys::Poll(child_.pidfd(), POLLIN, 0)) != 0) TRY(Start());
  const std::string_view bytes(reinterpret_cast<const char*>(&request), sizeof request);
  Status asked = sys::SendDescriptors(socket_.get(), bytes, {&dir_fd, 1});
  if (!asked.ok()) return Gone(std::move(asked).error());
  const int limit_ms = static_cast<int>(limit_.count());
  if (TRY(sys::Poll(socket_.get(), POLLIN, limit_ms)) == 0) {
    socket_.Reset();
    // ignoring: it is left behind where it hangs
    (void)KillInTime(std::move(child_), std::min(limit_ms, kLastBreathMs));
    return Overdue(limit_ms);
  }
  Result<WorkResult> done = ReceiveWork(socket_.get());
  if (!done.ok() && done.error().err == ECONNRESET) return Gone(std::move(done).error());
  if (!done.ok()) return std::move(done).error();
  if (done->bytes.empty()) return Gone(Error(Kind::kInternal, "an empty answer"));
  FileAnswer answer;
  answer.verdict = static_cast<Verdict>(done->bytes.front());
  answer.text = done->bytes.substr(1);
  if (!done->passed.empty()) answer.directory = std::move(done->passed.front());
  return answer;
}

Result<UniqueFd> FileReader::OpenDirectory(int dir_fd, const std::string& path) {
  const FileRequest request = TRY(RequestFor(FileRequest::What::kDirectory, path, 0));
  return std::move(TRY(Ask(request, dir_fd)).directory);
}

Result<std::string> FileReader::Read(int dir_fd, const std::string& path, std::size_t max_bytes) {
  const FileRequest request = TRY(RequestFor(FileRequest::What::kFile, path, max_bytes));
  return std::move(TRY(Ask(request, dir_fd)).text);
}

Result<FileReader::Judged> FileReader::ReadPlain(int dir_fd, const std::string& name,
                                                 std::size_t max_bytes) {
  const FileRequest request = TRY(RequestFor(FileRequest::What::kPlain, name, max_bytes));
  FileAnswer answer = TRY(Ask(request, dir_fd));
  Judged judged;
  judged.verdict = answer.verdict;
  (answer.verdict == Verdict::kSafe ? judged.content : judged.note) = std::move(answer.text);
  return judged;
}

}  // namespace taskcell::mounts
