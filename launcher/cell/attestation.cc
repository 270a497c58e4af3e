#include "launcher/cell/attestation.h"

#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/cpu_list.h"
#include "launcher/cell/wire.h"

namespace taskcell::cell {
namespace {

constexpr uint32_t kAttestationTag = 0x36544154;  // "TAT6"
constexpr std::size_t kMaxItems = 4096;           // of any one list
constexpr std::size_t kMaxPathText = 8192;        // paths, also as /proc shows them (escaped)

template <typename Io, typename Value>
void Limit(Io& io, Value& limit) {
  bool present = limit.has_value();
  uint64_t number = limit.value_or(0);
  io.Flag(present);
  if (present) io.Number(number);
  if constexpr (!std::is_const_v<Value>) limit = present ? std::optional(number) : std::nullopt;
}

template <typename Io, typename Value>
void TextLimit(Io& io, Value& limit) {
  bool present = limit.has_value();
  std::string text = limit.value_or("");
  io.Flag(present);
  if (present) io.String(text, kMaxCpuListBytes);
  if constexpr (!std::is_const_v<Value>) limit = present ? std::optional(text) : std::nullopt;
}

template <typename Io, typename Value>
void LimitFields(Io& io, Value& limits) {
  Limit(io, limits.memory_bytes);
  Limit(io, limits.memory_and_swap_bytes);
  Limit(io, limits.pids);
  Limit(io, limits.cpu_quota_us);
  Limit(io, limits.cpu_period_us);
  Limit(io, limits.io_weight);
  TextLimit(io, limits.cpu_set);
}

template <typename Io, typename Value>
void ProcessFields(Io& io, Value& seen) {
  io.Number(seen.pid);
  io.List(seen.uids, seen.uids.size(), kNumberItem);
  io.List(seen.gids, seen.gids.size(), kNumberItem);
  io.List(seen.groups, kMaxItems, kNumberItem);
  io.List(seen.capabilities, seen.capabilities.size(), kNumberItem);
  io.Flag(seen.no_new_privileges);
  io.Flag(seen.dumpable);
  io.List(seen.denied_calls, kMaxItems, [](auto& each, auto& call) {
    each.String(call.name, kMaxPathText);
    each.Number(call.result);
    each.Number(call.by_filter);
  });
  io.Number(seen.witness_seccomp_mode);
  io.String(seen.witness_filter, kMaxFilterBytes);
  io.Number(seen.landlock_abi);
  io.Flag(seen.landlock_applied);
  io.Number(seen.witness_nofile);
  io.Number(seen.witness_core);
  io.Number(seen.witness_file_bytes);
  SettingsFields(io, seen.settings);
}

template <typename Io, typename Value>
void MountFields(Io& io, Value& seen) {
  io.String(seen.mountinfo, kMaxAttestationBytes);
  io.List(seen.mounts, kMaxItems, [](auto& each, auto& mount) {
    each.String(mount.target, kMaxPathText);
    each.Number(mount.device);
    each.Number(mount.inode);
    each.Number(mount.mode);
    each.Number(mount.open_error);
  });
  io.List(seen.tmpfs, kMaxItems, [](auto& each, auto& tmpfs) {
    each.String(tmpfs.target, kMaxPathText);
    each.Number(tmpfs.size_bytes);
  });
}

template <typename Io, typename Value>
void RestFields(Io& io, Value& seen) {
  LimitFields(io, seen.limits);
  io.List(seen.interfaces, kMaxItems, [](auto& each, auto& interface) {
    each.String(interface.name, kMaxPathText);
    each.Number(interface.flags);
  });
  io.String(seen.routes, kMaxAttestationBytes);
  io.List(seen.descriptors, kMaxItems, [](auto& each, auto& descriptor) {
    each.Number(descriptor.fd);
    each.String(descriptor.target, kMaxPathText);
    each.Number(descriptor.mode);
    each.Number(descriptor.access);
    each.Number(descriptor.filesystem);
    each.Number(descriptor.device);
    each.Flag(descriptor.terminal);
    each.Flag(descriptor.receives);
  });
  io.List(seen.processes, kMaxItems, [](auto& each, auto& process) {
    each.Number(process.pid);
    each.String(process.name, kMaxPathText);
  });
  io.List(seen.devices, kMaxItems, [](auto& each, auto& device) {
    each.String(device.path, kMaxPathText);
    each.Number(device.mode);
    each.Number(device.number);
  });
  io.List(seen.namespaces, seen.namespaces.size(), [](auto& each, auto& seen_namespace) {
    each.Number(seen_namespace.device);
    each.Number(seen_namespace.inode);
  });
  io.Number(seen.keyring.serial);
  io.Number(seen.keyring.err);
  io.String(seen.keyring.description, kMaxPathText);
  io.List(seen.sockets, kMaxItems, [](auto& each, auto& socket) {
    each.String(socket.table, kMaxPathText);
    each.Number(socket.inode);
  });
  io.List(seen.ipc_objects, kMaxItems, kStringItem<kMaxPathText>);
  io.List(seen.environment_names, kMaxItems, kStringItem<kMaxPathText>);
  io.String(seen.hostname, kMaxPathText);
  io.String(seen.working_directory, kMaxPathText);
  io.Number(seen.listener_port);
  io.Number(seen.tunnel_port);
}

template <typename Io, typename Value>
void Fields(Io& io, Value& seen) {
  io.Tag(kAttestationTag);
  ProcessFields(io, seen);
  MountFields(io, seen);
  RestFields(io, seen);
}

}  // namespace

std::string EncodeAttestation(const InsideAttestation& inside) {
  WireWriter writer;
  Fields(writer, inside);
  return writer.Take();
}

Result<InsideAttestation> ParseAttestation(std::string_view bytes) {
  if (bytes.size() > kMaxAttestationBytes) {
    return Error(Kind::kViolation, Text("attestation: more than ", kMaxAttestationBytes, " bytes"));
  }
  WireReader reader(bytes);
  InsideAttestation seen;
  Fields(reader, seen);
  TRY(reader.Finish("attestation"));
  return seen;
}

}  // namespace taskcell::cell
