#include "probe/attack/bait.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <array>
#include <cstddef>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/spawn.h"
#include "launcher/sys/stream.h"
#include "probe/attack/payloads/call.h"

namespace taskcell::attack {
namespace {

constexpr int kForEverybody = 0666;
constexpr int kVictimTimeoutMs = 5000;

// A listening unix stream socket at `name`, which starts with a NUL for an abstract one.
Result<UniqueFd> ListenUnix(std::string_view name) {
  UniqueFd socket = TRY(sys::MakeSocket(AF_UNIX, SOCK_STREAM));
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return Error(Kind::kInternal, "too long a name");
  name.copy(address.sun_path, name.size());
  auto size = static_cast<uint32_t>(offsetof(struct sockaddr_un, sun_path) + name.size() +
                                    (name[0] == '\0' ? 0 : 1));
  if (Call(SYS_bind, socket.get(), &address, size) < 0 || Call(SYS_listen, socket.get(), 8) < 0)
    return Error(Kind::kSystem, Text("nothing can listen at '", Printable(name), "'"));
  return socket;
}

}  // namespace

Result<Bait> Bait::Lay(const std::string& program, const std::string& directory,
                       const std::string& run_id, Targets& targets) {
  Bait bait;
  TRY(bait.ListenEverywhere(directory, run_id, targets));
  bait.objects_.emplace(TRY(BaitObjects::Make(run_id, targets)));
  TRY(bait.StartVictim(program, targets));
  return bait;
}

Status Bait::ListenEverywhere(const std::string& directory, const std::string& run_id,
                              Targets& targets) {
  sys::LoopbackListener tcp = TRY(sys::ListenLoopback());
  targets.port = tcp.port;
  listeners_.push_back({"the host's loopback", std::move(tcp.fd)});
  targets.abstract_socket = "taskcell-attack-" + run_id;
  std::string abstract(1, '\0');
  listeners_.push_back({"an abstract socket", TRY(ListenUnix(abstract + targets.abstract_socket))});
  targets.socket = directory + "/socket";
  listeners_.push_back({"a socket of the host", TRY(ListenUnix(targets.socket))});
  targets.gate = directory + "/gate";
  listeners_.push_back({"a gate of the host", TRY(sys::ListenPackets(targets.gate))});
  for (const std::string& path : {targets.socket, targets.gate})
    TRY(sys::ChangeModeAt(AT_FDCWD, path, kForEverybody));
  for (const Listener& listener : listeners_) TRY(sys::SetNonBlocking(listener.fd.get()));
  auto pair = TRY(sys::MakePacketPair());
  gate_ = std::move(pair.first);
  gate_end_ = std::move(pair.second);
  return Ok();
}

Status Bait::StartVictim(const std::string& program, Targets& targets) {
  constexpr int kOutNumber = 3;
  sys::Pipe out = TRY(sys::MakePipe());
  const std::array<sys::PassedDescriptor, 1> passed = {{{out.write_end.get(), kOutNumber}}};
  victim_ = TRY(sys::SpawnProgram(program, {"taskcell-attacker", kBeVictim}, {}, passed));
  out.write_end.Reset();
  if (TRY(sys::Poll(out.read_end.get(), POLLIN, kVictimTimeoutMs)) == 0)
    return Error(Kind::kSystem, "the victim did not start in time");
  std::array<char, 64> told;
  std::size_t size = TRY(sys::Read(out.read_end.get(), told));
  std::optional<uint64_t> address = ParseUnsigned(Trim({told.data(), size}));
  if (!address) return Error(Kind::kSystem, "the victim could not start");
  targets.victim = static_cast<uint64_t>(victim_.pid());
  targets.victim_address = *address;
  return Ok();
}

void Bait::Settle() {
  (void)Changes();  // ignoring: who came before is forgotten
  before_ = objects_->Look();
}

std::vector<std::string> Bait::Changes() const {
  std::vector<std::string> changes;
  for (const Listener& listener : listeners_) {
    while (true) {
      Result<std::optional<UniqueFd>> came = sys::AcceptNow(listener.fd.get());
      if (!came.ok() || !came.value().has_value()) break;
      changes.push_back(Text("somebody connected to ", listener.what));
    }
  }
  for (const auto& [what, now] : objects_->Look()) {
    auto before = before_.find(what);
    if (before != before_.end() && before->second != now)
      changes.push_back(Text(what, " of the host changed"));
  }
  Result<short> ended = sys::Poll(victim_.pidfd(), POLLIN, 0);
  if (!ended.ok() || ended.value() != 0) changes.emplace_back("a process outside was ended");
  return changes;
}

}  // namespace taskcell::attack
