#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cell/compare_parts.h"

namespace taskcell::cell {
namespace {

// The inodes of the namespaces a machine starts with, fixed in the kernel's <linux/proc_ns.h>. An
// observer that has namespaces of its own (a hardened service, a container) knows the machine's by
// these; net and mnt have none.
constexpr uint64_t InitialInode(std::string_view name) {
  if (name == "ipc") return 0xEFFFFFFF;
  if (name == "uts") return 0xEFFFFFFE;
  if (name == "pid") return 0xEFFFFFFC;
  if (name == "cgroup") return 0xEFFFFFFB;
  if (name == "time") return 0xEFFFFFFA;
  return 0;
}

bool IsKnown(const NamespaceSeen& seen) { return seen.inode != 0; }

// Empty where the namespace is not the host's.
std::string WhyNotOwn(std::string_view name, const NamespaceSeen& inside,
                      const NamespaceSeen& host) {
  if (!IsKnown(inside)) return "not seen inside";
  if (!IsKnown(host)) return "the host's own not seen";
  bool same = inside.inode == host.inode && inside.device == host.device;
  return same || inside.inode == InitialInode(name) ? "shared with the host" : "";
}

// Empty where the keyring is the cell's own. Every process has one: without one of its own it is
// its user's ("_uid_ses.<uid>").
std::string WhyNotOwn(const KeyringSeen& inside, const KeyringSeen& host) {
  if (inside.err != 0) return Text("not seen inside: errno ", inside.err);
  if (inside.serial == host.serial) return "the host's";
  return inside.description.starts_with("_uid") ? Printable(inside.description) : "";
}

}  // namespace

void CompareKeyring(const CellPlan& plan, Engine engine, const Attestation& seen,
                    Mismatches& found) {
  const KeyringSeen& inside = seen.inside.keyring;
  // What an engine's own filter hides from init it hides from the job.
  bool unseen = inside.err != 0 && engine != Engine::kNative;
  if (plan.keyring_may_stay || unseen || inside.err == ENOSYS) return;
  std::string wrong = WhyNotOwn(inside, seen.outside.host_keyring);
  if (!wrong.empty()) found.Add("keyring", "the cell's own", wrong);
}

void CompareNamespaces(Engine engine, const Attestation& seen, Mismatches& found) {
  bool own_net = false;
  bool own_ipc = false;
  for (std::size_t index = 0; index < kNamespaces.size(); ++index) {
    std::string_view name = kNamespaces[index];
    const NamespaceSeen& inside = seen.inside.namespaces[index];
    std::string wrong = WhyNotOwn(name, inside, seen.outside.host_namespaces[index]);
    // An engine that runs as root makes user namespaces only where it is configured to.
    if (name == "user" && engine != Engine::kNative && IsKnown(inside)) wrong.clear();
    // Engines make no time namespaces, and a kernel may have none (Linux 5.6).
    bool no_time = !IsKnown(inside) && !IsKnown(seen.outside.host_namespaces[index]);
    if (name == "time" && (engine != Engine::kNative || no_time)) wrong.clear();
    own_net = own_net || (name == "net" && wrong.empty());
    own_ipc = own_ipc || (name == "ipc" && wrong.empty());
    if (!wrong.empty()) found.Add(Text("namespace.", name), "the cell's own", wrong);
  }
  // What is in a namespace of the host's is the host's affair, and its sharing said already.
  for (const SocketSeen& socket : seen.inside.sockets) {
    if (own_net)
      found.Add(Text("socket:", Printable(socket.table)), "none but init's",
                Text("inode ", socket.inode));
  }
  for (const std::string& object : seen.inside.ipc_objects) {
    if (own_ipc) found.Add(Text("ipc:", Printable(object)), "none", "there");
  }
}

}  // namespace taskcell::cell
