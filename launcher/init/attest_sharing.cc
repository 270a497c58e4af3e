#include <fcntl.h>

#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/init/attest.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"

namespace taskcell::init {
namespace {

constexpr std::size_t kMostNamed = 16;  // of each kind: enough to tell
constexpr std::size_t kMaxEntries = 4096;
constexpr std::size_t kUnixPathWord = 7;

// A table below /proc/self/net, whose first line is headings, and the word of a line that is the
// inode.
struct SocketTable {
  std::string_view name;
  std::size_t inode_word;
};
constexpr SocketTable kSocketTables[] = {{"tcp", 9}, {"tcp6", 9}, {"udp", 9},  {"udp6", 9},
                                         {"raw", 9}, {"raw6", 9}, {"unix", 6}, {"packet", 8}};

// A file a kernel may lack (IPv6, packet sockets, System V) reads as empty.
Result<std::string> ReadTable(const std::string& path) {
  Result<std::string> text = sys::ReadFile(AT_FDCWD, path, kMaxProcFileBytes);
  if (!text.ok() && text.error().err == ENOENT) return std::string();
  return text;
}

std::vector<std::string_view> LinesBelowHeadings(std::string_view text) {
  std::vector<std::string_view> lines = Split(Trim(text), '\n');
  if (!lines.empty()) lines.erase(lines.begin());
  return lines;
}

class SocketSearch {
 public:
  SocketSearch(const OwnSockets& own, cell::InsideAttestation& seen) : own_(own), seen_(seen) {}

  Status Run() {
    for (const SocketTable& table : kSocketTables) {
      std::string text = TRY(ReadTable(Text("/proc/self/net/", table.name)));
      for (std::string_view line : LinesBelowHeadings(text)) Look(table, Words(line));
    }
    return Ok();
  }

 private:
  void Look(const SocketTable& table, const std::vector<std::string_view>& words) {
    std::optional<uint64_t> inode;
    if (table.inode_word < words.size()) inode = ParseUnsigned(words[table.inode_word]);
    if (inode && *inode != 0 && IsOwn(*inode)) return;
    if (table.name == "unix" && IsGatePeer(words)) return;
    if (seen_.sockets.size() < kMostNamed)
      seen_.sockets.push_back({std::string(table.name), inode.value_or(0)});
  }

  bool IsOwn(uint64_t inode) const {
    return inode == own_.gate || inode == own_.listener || inode == own_.tunnel_listener;
  }

  // The other end of a unix connection is made in the namespace of who connects, and has the path
  // the listener was bound to. There is one of it.
  bool IsGatePeer(const std::vector<std::string_view>& words) {
    bool is_peer = !peer_found_ && !own_.gate_peer.empty() && words.size() == kUnixPathWord + 1 &&
                   words[kUnixPathWord] == own_.gate_peer;
    peer_found_ = peer_found_ || is_peer;
    return is_peer;
  }

  const OwnSockets& own_;
  cell::InsideAttestation& seen_;
  bool peer_found_ = false;
};

void AddObject(std::string object, cell::InsideAttestation& seen) {
  if (seen.ipc_objects.size() < kMostNamed) seen.ipc_objects.push_back(std::move(object));
}

Status SearchIpc(cell::InsideAttestation& seen) {
  for (std::string_view kind : {"msg", "sem", "shm"}) {
    std::string text = TRY(ReadTable(Text("/proc/sysvipc/", kind)));
    if (!LinesBelowHeadings(text).empty()) AddObject(std::string(kind), seen);
  }
  for (const char* place : {"/dev/mqueue", "/dev/shm"}) {
    Result<UniqueFd> directory =
        sys::OpenAt2(AT_FDCWD, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    if (!directory.ok() && directory.error().err == ENOENT) continue;
    UniqueFd opened = TRY(std::move(directory));
    for (const sys::DirectoryEntry& entry : TRY(sys::ReadDirectory(opened.get(), kMaxEntries)))
      AddObject(Text(place, "/", entry.name), seen);
  }
  return Ok();
}

}  // namespace

void AttestNamespaces(cell::InsideAttestation& seen) {
  for (std::size_t index = 0; index < cell::kNamespaces.size(); ++index) {
    // One that can't be looked at stays unknown, which is no cell's.
    std::string_view name = cell::kNamespaces[index];
    // Before Linux 6.1 an exec does not take init along, but the job is its child.
    Result<struct stat> info = sys::StatNamespace(name == "time" ? "time_for_children" : name);
    if (info.ok()) seen.namespaces[index] = {info->st_dev, info->st_ino};
  }
}

Status AttestSharing(const OwnSockets& own, cell::InsideAttestation& seen) {
  TRY(SocketSearch(own, seen).Run().With("attest sockets"));
  return SearchIpc(seen).With("attest ipc");
}

}  // namespace taskcell::init
