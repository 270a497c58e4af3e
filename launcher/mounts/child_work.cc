#include "launcher/mounts/child_work.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/cell/wire.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount_id.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"

namespace taskcell::mounts {
namespace {

constexpr uint32_t kTag = 0x574f5201;
constexpr std::size_t kMaxBytes = 64U << 20U;

// An Error's code lives for ever: those that work here can have.
constexpr std::array<std::string_view, 3> kCodes = {"", "agent_dir_unmountable", "stopped"};

// What travels: a result, or an Error where `is_error`.
struct Letter {
  bool is_error = false;
  std::string bytes;  // the Error's text
  Kind kind = Kind::kInternal;
  int32_t err = 0;
  uint8_t code = 0;
};

template <typename Io, typename Value>
void Fields(Io& io, Value& letter) {
  io.Tag(kTag);
  io.Flag(letter.is_error);
  io.String(letter.bytes, kMaxBytes);
  io.Choice(letter.kind, Kind::kInternal);
  io.Number(letter.err);
  io.Number(letter.code);
}

Letter LetterOf(const Result<WorkResult>& result) {
  Letter letter;
  letter.is_error = !result.ok();
  if (result.ok()) {
    letter.bytes = result.value().bytes;
    return letter;
  }
  const Error& error = result.error();
  letter.bytes = error.text;
  letter.kind = error.kind;
  letter.err = error.err;
  const auto* code = std::find(kCodes.begin(), kCodes.end(), error.code);
  if (code != kCodes.end()) letter.code = static_cast<uint8_t>(code - kCodes.begin());
  return letter;
}

Error ErrorOf(Letter letter) {
  const std::string_view code = letter.code < kCodes.size() ? kCodes.at(letter.code) : "";
  return Error(letter.kind, std::move(letter.bytes), letter.err).Coded(code);
}

bool HasEnded(const sys::Child& child, int within_ms) {
  const Result<short> ended = sys::Poll(child.pidfd(), POLLIN, within_ms);
  return ended.ok() && ended.value() != 0;
}

// Keeps a child that could not be killed in time, and lets go of those that have ended since.
void Abandon(sys::Child child) {
  struct Abandoned {
    std::mutex mutex;
    std::vector<sys::Child> children;
  };
  static auto* abandoned = new Abandoned;  // never destroyed: that would wait
  std::scoped_lock lock(abandoned->mutex);
  std::erase_if(abandoned->children, [](const sys::Child& each) { return HasEnded(each, 0); });
  abandoned->children.push_back(std::move(child));
}

// What a reader or a writer at the other end of this process's own streams waits for must not
// depend on a child that may hang.
Status CloseStandardStreams() {
  UniqueFd null = TRY(sys::Open("/dev/null", O_RDWR));
  for (int fd = 0; fd <= 2; ++fd) TRY(sys::PlaceDescriptor(null.get(), fd));
  return Ok();
}

[[noreturn]] void Work(const std::function<Result<WorkResult>()>& work, int socket) {
  auto result = [&]() -> Result<WorkResult> {
    TRY(sys::SetParentDeathSignal(SIGKILL));
    TRY(KeepOthersOut());
    TRY(CloseStandardStreams());
    return work();
  }();
  sys::ExitNow(SendWork(socket, result).ok() ? 0 : 1);
}

std::string Place(std::span<const char> progress) {
  const std::string_view all(progress.data(), progress.size());
  const std::string_view path = all.substr(0, all.find('\0'));
  return path.empty() ? "" : Text(" (it was at '", Printable(path), "')");
}

}  // namespace

bool KillInTime(sys::Child child, int breath_ms) {
  (void)child.Signal(SIGKILL);  // ignoring: ESRCH, it has ended by itself
  if (HasEnded(child, breath_ms)) return true;
  Abandon(std::move(child));
  return false;
}

Status KeepOthersOut() { return sys::MountIdIsToldByStat() ? sys::SetNotDumpable() : Ok(); }

Error Overdue(int limit_ms, std::span<const char> progress) {
  return Error(Kind::kSystem,
               Text("it was not read within ", limit_ms, " ms", Place(progress),
                    ": another process holds a file of it in the middle of a write, or its file "
                    "system does not answer; see what has it open (fuser -v) and what is mounted "
                    "there, and end that"),
               ETIMEDOUT);
}

Status SendWork(int socket, const Result<WorkResult>& result) {
  // Longer than a packet can be, so it goes as a file.
  UniqueFd file = TRY(sys::MakeMemfd("taskcell-work", 0));
  const Letter letter = LetterOf(result);
  cell::WireWriter writer;
  Fields(writer, letter);
  TRY(sys::WriteAll(file.get(), writer.Take()));
  TRY(sys::Rewind(file.get()));
  std::vector<int> passed = {file.get()};
  if (result.ok())
    for (const UniqueFd& fd : result.value().passed) passed.push_back(fd.get());
  return sys::SendDescriptors(socket, "w", passed);
}

Result<WorkResult> ReceiveWork(int socket) {
  std::array<char, 8> packet;
  WorkResult result;
  Result<std::size_t> got = sys::ReceiveDescriptors(socket, packet, result.passed);
  if (!got.ok() && got.error().err != ECONNRESET) return std::move(got).error();
  if (!got.ok() || result.passed.empty())
    return Error(Kind::kSystem, "the child that was to read it ended without a word", ECONNRESET);
  const std::string bytes = TRY(sys::ReadAll(result.passed.front().get(), kMaxBytes + 64));
  result.passed.erase(result.passed.begin());
  Letter letter;
  cell::WireReader reader(bytes);
  Fields(reader, letter);
  TRY(reader.Finish("what a child of this program says"));
  if (letter.is_error) return ErrorOf(std::move(letter));
  result.bytes = std::move(letter.bytes);
  return result;
}

Result<WorkResult> DoInChild(const std::function<Result<WorkResult>()>& work,
                             const WorkTerms& terms, bool& is_gone) {
  is_gone = true;
  TRY(sys::AssertSingleThread());
  sys::SocketPair pair = TRY(sys::MakePacketPair());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) {
    pair.first.Reset();
    Work(work, pair.second.get());
  }
  pair.second.Reset();
  std::array<struct pollfd, 2> wait = {{{pair.first.get(), POLLIN, 0}, {terms.stop_fd, POLLIN, 0}}};
  const int ready = TRY(sys::PollAll(wait, terms.limit_ms));
  if (ready != 0 && wait[1].revents == 0) {
    Result<WorkResult> result = ReceiveWork(pair.first.get());
    // It has said all it has to say.
    is_gone = KillInTime(std::move(cloned.child));
    return result;
  }
  is_gone = KillInTime(std::move(cloned.child));
  if (ready == 0) return Overdue(terms.limit_ms, terms.progress);
  return Error(Kind::kSystem, "it was no longer wanted while it was read", ECANCELED)
      .Coded("stopped");
}

}  // namespace taskcell::mounts
