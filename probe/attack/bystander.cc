#include "probe/attack/bystander.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"
#include "probe/attack/payloads/call.h"

namespace taskcell::attack {
namespace {

constexpr uint32_t kNobody = 65534;
constexpr uint64_t kUsualPipeBytes = 65536;
constexpr std::size_t kMaxToldBytes = 4096;
constexpr int kPauseMs = 1;

Status MakeInotify() {
  int64_t made = Call(SYS_inotify_init1, IN_CLOEXEC);
  if (made < 0) return Error(Kind::kSystem, "an inotify instance", static_cast<int>(-made));
  UniqueFd closes_it(static_cast<int>(made));
  return Ok();
}

Status MakePipe(uint64_t& smallest) {
  sys::Pipe pipe = TRY(sys::MakePipe());
  int64_t size = Call(SYS_fcntl, pipe.write_end.get(), F_GETPIPE_SZ);
  if (size < 0) return Error(Kind::kSystem, "the size of a pipe", static_cast<int>(-size));
  smallest = std::min(smallest, static_cast<uint64_t>(size));
  return Ok();
}

Status SendOne() {
  sys::SocketPair pair = TRY(sys::MakePacketPair());
  const std::array<int, 1> passed = {pair.second.get()};
  TRY(sys::SendDescriptors(pair.first.get(), "x", passed));
  std::array<char, 1> packet;
  std::vector<UniqueFd> taken;
  TRY(sys::ReceiveDescriptors(pair.second.get(), packet, taken));
  if (taken.size() == 1) return Ok();
  return Error(Kind::kSystem, "a descriptor that was sent did not come");
}

Status Round(uint64_t& smallest) {
  TRY(MakeInotify());
  TRY(MakePipe(smallest));
  return SendOne();
}

// "ROUNDS BYTES ERRNO WHAT", once a first byte said that all could be had.
void Go(int stop, int told) {
  uint64_t rounds = 0;
  uint64_t smallest = kUsualPipeBytes;
  bool stopped = false;
  Status had = Round(smallest);
  if (had.ok() && !sys::WriteAll(told, "+").ok()) return;
  while (had.ok() && !stopped) {
    ++rounds;
    Result<short> asked = sys::Poll(stop, POLLIN, kPauseMs);
    stopped = !asked.ok() || asked.value() != 0;
    had = Round(smallest);
  }
  std::string line = Text(rounds, " ", smallest);
  if (!had.ok()) line += Text(" ", had.error().err, " ", had.error().text);
  (void)sys::WriteAll(told, line);  // ignoring: without a reader nobody asks
}

[[noreturn]] void Be(int stop, int told) {
  bool ready = ::geteuid() != 0 || (sys::SetGroups({}).ok() && sys::SetIds(kNobody, kNobody).ok());
  // After a change of ids, which takes it back.
  ready = ready && sys::SetParentDeathSignal(SIGKILL).ok();
  // As whoever makes cells does: the soft limit also bounds what its user may have on its way.
  (void)sys::RaiseResourceLimit(RLIMIT_NOFILE);  // ignoring: then the soft one holds
  if (ready) Go(stop, told);
  sys::ExitNow(0);
}

}  // namespace

Result<Bystander> Bystander::Start() {
  sys::Pipe stop = TRY(sys::MakePipe());
  sys::Pipe told = TRY(sys::MakePipe());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) {
    stop.write_end.Reset();
    Be(stop.read_end.get(), told.write_end.get());
  }
  told.write_end.Reset();
  std::array<char, 1> first;
  const std::size_t got = TRY(sys::Read(told.read_end.get(), first));
  if (got != 1 || first[0] != '+')
    return Error(Kind::kSystem, "a process outside has not all that its user has a quota of");
  return Bystander(std::move(cloned.child), std::move(stop.write_end), std::move(told.read_end));
}

Result<Bystander::Seen> Bystander::End() {
  stop_.Reset();
  const std::string told = TRY(sys::ReadAll(told_.get(), kMaxToldBytes));
  TRY(child_.Wait());
  const std::vector<std::string_view> words = Words(told);
  if (words.size() < 2) return Error(Kind::kSystem, "the process outside ended without a word");
  Seen seen;
  seen.rounds = ParseUnsigned(words[0]).value_or(0);
  seen.smallest_pipe_bytes = ParseUnsigned(words[1]).value_or(0);
  if (words.size() > 2) {
    const int err = static_cast<int>(ParseUnsigned(words[2]).value_or(0));
    seen.denied = NameOf(err);
    for (std::size_t i = 3; i < words.size(); ++i) seen.denied += Text(" ", words[i]);
  }
  return seen;
}

std::string Describe(const Bystander::Seen& seen) {
  if (!seen.denied.empty()) return Text("outside its user was denied: ", seen.denied);
  std::string text =
      Text("outside its user had an inotify instance, a pipe of ", seen.smallest_pipe_bytes,
           " bytes and a descriptor sent, ", seen.rounds, " times meanwhile");
  if (seen.smallest_pipe_bytes < kUsualPipeBytes)
    text += "; pages of pipes are the user's (taskcell-launch(1), CAVEATS)";
  return text;
}

}  // namespace taskcell::attack
