#include "probe/facts/engine_facts.h"

#include <sys/stat.h>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxTableBytes = 4U << 20U;

// "0100007F" is 127.0.0.1: the kernel prints 32-bit words in the host's byte order.
std::string AddressOf(std::string_view hex) {
  constexpr std::size_t kIpv4Digits = 8;
  if (hex.size() != kIpv4Digits) {
    bool any = hex.find_first_not_of('0') == hex.npos;
    return any ? "[::]" : Text("[", hex, "]");
  }
  uint64_t word = ParseHex(hex).value_or(0);
  return Text(word & 0xFFU, '.', (word >> 8U) & 0xFFU, '.', (word >> 16U) & 0xFFU, '.',
              word >> 24U);
}

}  // namespace

std::vector<std::string> DockerListeners(std::string_view proc_net_tcp) {
  std::vector<std::string> found;
  for (std::string_view line : Split(proc_net_tcp, '\n')) {
    std::vector<std::string_view> words = Words(line);  // sl, local, remote, state, ...
    if (words.size() < 4 || words[3] != "0A") continue;
    std::size_t colon = words[1].find(':');
    if (colon == words[1].npos) continue;
    std::optional<uint64_t> port = ParseHex(words[1].substr(colon + 1));
    if (port != 2375U && port != 2376U) continue;
    found.push_back(Text(AddressOf(words[1].substr(0, colon)), ':', *port));
  }
  return found;
}

bool IsListening(std::string_view proc_net_unix, std::string_view path) {
  constexpr std::string_view kAccepts = "00010000";  // __SO_ACCEPTCON
  for (std::string_view line : Split(proc_net_unix, '\n')) {
    std::vector<std::string_view> words = Words(line);  // Num, RefCount, Protocol, Flags, ..., Path
    if (words.size() != 8 || words[3] != kAccepts) continue;
    std::string_view at = words[7];
    if (at.starts_with("/var/run/")) at.remove_prefix(4);  // a link to /run
    if (at == path) return true;
  }
  return false;
}

EngineFacts ReadEngineFacts(sys::FileTree& tree, uint32_t uid) {
  EngineFacts facts;
  std::string own = Text("/run/user/", uid);
  const std::pair<std::string, bool> places[] = {{"/run/docker.sock", false},
                                                 {"/run/podman/podman.sock", false},
                                                 {own + "/docker.sock", true},
                                                 {own + "/podman/podman.sock", true}};
  std::string listeners = tree.Read("/proc/net/unix", kMaxTableBytes).text;
  for (const auto& [path, rootless] : places) {
    sys::FileSeen seen = tree.Look(path);
    if (!seen.IsKind(S_IFSOCK)) continue;
    facts.sockets.push_back({path, std::move(seen), rootless, IsListening(listeners, path)});
  }
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (std::string& each : DockerListeners(tree.Read(table, kMaxTableBytes).text))
      facts.tcp_listeners.push_back(std::move(each));
  }
  std::string groups = tree.Read("/etc/group", kMaxTableBytes).text;
  for (std::string_view line : Split(groups, '\n')) {
    std::vector<std::string_view> fields = Split(line, ':');
    if (fields.size() == 4 && fields[0] == "docker") facts.docker_group = fields[3];
  }
  return facts;
}

}  // namespace taskcell::probe
