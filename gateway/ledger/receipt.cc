#include "gateway/ledger/receipt.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

void PutSeen(JsonText& json, std::string_view key, const std::optional<uint64_t>& value) {
  json.Key(key);
  if (!value.has_value()) {
    json.Null();
  } else if (*value == cell::LimitsSeen::kUnlimited) {
    json.String("unlimited");
  } else {
    json.Unsigned(*value);
  }
}

std::optional<uint64_t> CpuMillis(const cell::LimitsSeen& limits) {
  constexpr uint64_t kMillis = 1000;
  if (!limits.cpu_quota_us.has_value() || !limits.cpu_period_us.has_value()) return std::nullopt;
  if (*limits.cpu_quota_us == cell::LimitsSeen::kUnlimited) return limits.cpu_quota_us;
  if (*limits.cpu_period_us == 0) return std::nullopt;
  return *limits.cpu_quota_us * kMillis / *limits.cpu_period_us;
}

void PutLimit(JsonText& json, std::string_view name, uint64_t asked,
              const std::optional<uint64_t>& inside, const std::optional<uint64_t>& outside) {
  json.Open('{').Key("limit").String(name).Key("asked").Unsigned(asked);
  PutSeen(json, "seen_inside", inside);
  PutSeen(json, "seen_outside", outside);
  json.Close('}');
}

void PutLimits(JsonText& json, const Receipt& receipt) {
  const cell::Limits& asked = receipt.plan.limits;
  const cell::LimitsSeen& in = receipt.seen.inside.limits;
  const cell::LimitsSeen& out = receipt.seen.outside.limits;
  json.Key("limits").Open('[');
  PutLimit(json, "memory_bytes", asked.memory_bytes, in.memory_bytes, out.memory_bytes);
  PutLimit(json, "memory_and_swap_bytes", asked.memory_bytes, in.memory_and_swap_bytes,
           out.memory_and_swap_bytes);
  PutLimit(json, "pids", asked.pids, in.pids, out.pids);
  PutLimit(json, "cpu_millis", asked.cpu_millis, CpuMillis(in), CpuMillis(out));
  json.Close(']');
  json.Key("tmpfs").Open('[');
  for (const cell::PlannedTmpfs& planned : receipt.plan.tmpfs) {
    std::optional<uint64_t> seen;
    for (const cell::TmpfsSeen& tmpfs : receipt.seen.inside.tmpfs)
      if (tmpfs.target == planned.target) seen = tmpfs.size_bytes;
    json.Open('{').Key("target").String(planned.target);
    json.Key("asked").Unsigned(planned.size_bytes);
    PutSeen(json, "seen_inside", seen);
    json.Close('}');
  }
  json.Close(']');
}

std::string_view NetworkWord(cell::NetworkMode network) {
  switch (network) {
    case cell::NetworkMode::kNone:
      return "none";
    case cell::NetworkMode::kProvider:
      return "provider";
    case cell::NetworkMode::kOpen:
      return "open";
  }
  return "";
}

void PutCell(JsonText& json, const Receipt& receipt) {
  json.Key("cell").Open('{');
  json.Key("uid").Unsigned(receipt.plan.uid).Key("gid").Unsigned(receipt.plan.gid);
  json.Key("root").String(receipt.plan.root == cell::RootKind::kHost ? "host"
                                                                     : receipt.plan.root_source);
  json.Key("network").String(NetworkWord(receipt.plan.network));
  json.Key("mounts").Open('[');
  for (const cell::PlannedMount& mount : receipt.plan.mounts) {
    json.Open('{').Key("target").String(mount.target);
    json.Key("writable").Bool(mount.writable).Close('}');
  }
  json.Close(']').Close('}');
}

void PutAttestation(JsonText& json, const Receipt& receipt) {
  json.Key("verified").Bool(receipt.verified);
  json.Key("mismatches").Open('[');
  for (const cell::Mismatch& mismatch : receipt.mismatches) {
    json.Open('{').Key("field").String(mismatch.field);
    json.Key("planned").String(mismatch.planned).Key("found").String(mismatch.found).Close('}');
  }
  json.Close(']');
  if (!receipt.attested) return;
  const cell::InsideAttestation& inside = receipt.seen.inside;
  json.Key("seen").Open('{');
  json.Key("host_uid").Unsigned(receipt.seen.outside.host_uids[0]);
  json.Key("no_new_privileges").Bool(inside.no_new_privileges);
  json.Key("seccomp_mode").Unsigned(inside.witness_seccomp_mode);
  json.Key("landlock_abi").Number(inside.landlock_abi);
  json.Key("denied_calls_tried").Unsigned(inside.denied_calls.size());
  json.Key("interfaces").Open('[');
  for (const cell::InterfaceSeen& interface : inside.interfaces) json.String(interface.name);
  json.Close(']').Close('}');
}

void PutSnapshot(JsonText& json, const Receipt& receipt) {
  json.Key("agent_directory").Open('{');
  json.Key("bytes").Unsigned(receipt.snapshot.bytes);
  json.Key("entries").Open('[');
  for (const mounts::SnapshotEntry& entry : receipt.snapshot.entries) {
    json.Open('{').Key("entry").String(entry.name);
    json.Key("verdict").String(mounts::Name(entry.verdict));
    json.Key("reason").String(mounts::Name(entry.reason)).Close('}');
  }
  json.Close(']').Close('}');
}

void PutEvidence(JsonText& json, const Receipt& receipt) {
  json.Key("egress").Open('{').Key("upstream").String(receipt.upstream);
  json.Key("overridden").Bool(receipt.upstream_overridden);
  json.Key("credential_inside").Bool(receipt.credential_inside);
  json.Key("allow_hosts").Open('[');
  for (const std::string& host : receipt.tunnel_hosts) json.String(host);
  json.Close(']').Key("record");
  if (receipt.egress_json.empty()) {
    json.Null();
  } else {
    json.Raw(receipt.egress_json);
  }
  json.Close('}').Key("usage");
  if (receipt.usage_json.empty()) {
    json.Null();
  } else {
    json.Raw(receipt.usage_json);
  }
  json.Key("evidence_differs").Open('[');
  for (const EvidenceDifference& difference : receipt.differences) {
    json.Open('{').Key("what").String(difference.what);
    json.Key("told").String(difference.told);
    json.Key("recorded").String(difference.recorded).Close('}');
  }
  json.Close(']').Key("export");
  if (receipt.export_json.empty()) {
    json.Null();
  } else {
    json.Raw(receipt.export_json);
  }
  json.Key("cgroup_events");
  if (receipt.events_json.empty()) {
    json.Null();
  } else {
    json.Raw(receipt.events_json);
  }
  json.Key("job_end").String(receipt.job_end);
}

}  // namespace

std::string ReceiptJson(const Receipt& receipt) {
  JsonText json;
  json.Open('{');
  PutHead(json, receipt);
  json.Key("setup_ms").Unsigned(receipt.setup_ms).Key("wall_ms").Unsigned(receipt.wall_ms);
  PutLimits(json, receipt);
  PutCell(json, receipt);
  PutAttestation(json, receipt);
  PutSnapshot(json, receipt);
  PutEvidence(json, receipt);
  json.Key("warnings").Open('[');
  for (const std::string& warning : receipt.warnings) json.String(warning);
  json.Close(']').Close('}');
  return json.text();
}

Status WriteReceipt(int sandbox_fd, std::string_view run_id, std::string_view json) {
  Status made = sys::MakeDirectory(sandbox_fd, "receipts", 0700);
  if (!made.ok() && made.error().err != EEXIST) return made;
  UniqueFd directory = TRY(sys::OpenAt2(sandbox_fd, "receipts", O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                        sys::kResolveBeneath));
  const std::string name = Text(run_id, ".json");
  UniqueFd file = TRY(sys::OpenAt2(directory.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                   sys::kResolveBeneath, 0600));
  Status written = sys::WriteAll(file.get(), Text(json, "\n"));
  // A part of a receipt is none. Ignoring: what cannot be written is told.
  if (!written.ok()) (void)sys::RemoveFile(directory.get(), name);
  return written;
}

}  // namespace taskcell::gateway
