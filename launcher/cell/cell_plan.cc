#include "launcher/cell/cell_plan.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cell/cpu_list.h"
#include "launcher/cell/wire.h"

namespace taskcell::cell {
namespace {

constexpr uint32_t kPlanTag = 0x354c5054;  // "TPL5"
constexpr std::size_t kIdLength = 32;
constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMaxHostnameBytes = 63;
constexpr std::size_t kMaxImageEnvironment = 1024;
constexpr uint32_t kPermissionBits = 07777;
// A cell as big as this asks for no limit at all; it also keeps sums of limits from overflowing.
constexpr uint64_t kMaxBytes = uint64_t{1} << 50U;
constexpr uint64_t kMaxCount = uint64_t{1} << 22U;  // the kernel's own highest number of pids

template <typename Io, typename Value>
void Fields(Io& io, Value& plan) {
  io.Tag(kPlanTag);
  io.String(plan.run_id, kIdLength);
  io.String(plan.agent, kMaxNameBytes);
  io.String(plan.home_label, kIdLength);
  io.Number(plan.deadline_unix_ms);
  io.Number(plan.uid);
  io.Number(plan.gid);
  io.Choice(plan.root, RootKind::kHost);
  io.String(plan.root_source, kMaxPathBytes);
  io.Number(plan.root_device);
  io.Number(plan.root_inode);
  io.List(plan.mounts, kMaxPlannedMounts, [](auto& each, auto& mount) {
    each.String(mount.source, kMaxPathBytes);
    each.String(mount.target, kMaxPathBytes);
    each.Choice(mount.kind, EntryKind::kDirectory);
    each.Number(mount.device);
    each.Number(mount.inode);
    each.Flag(mount.writable);
    each.Flag(mount.follows_links);
  });
  io.List(plan.tmpfs, kMaxPlannedMounts, [](auto& each, auto& tmpfs) {
    each.String(tmpfs.target, kMaxPathBytes);
    each.Number(tmpfs.size_bytes);
    each.Number(tmpfs.mode);
    each.Flag(tmpfs.exec);
    each.Flag(tmpfs.read_only);
  });
  io.Number(plan.limits.memory_bytes);
  io.Number(plan.limits.pids);
  io.Number(plan.limits.cpu_millis);
  io.Number(plan.limits.nofile);
  io.Flag(plan.limits.cpu_may_be_missing);
  io.Flag(plan.limits.oom_group);
  io.Number(plan.limits.file_bytes);
  io.Number(plan.limits.io_weight);
  io.String(plan.limits.cpu_set, kMaxCpuListBytes);
  io.Choice(plan.network, NetworkMode::kOpen);
  io.Flag(plan.tunnels);
  io.Flag(plan.terminal);
  io.String(plan.hostname, kMaxHostnameBytes);
  io.String(plan.working_directory, kMaxPathBytes);
  io.String(plan.filter, kMaxFilterBytes);
  io.Flag(plan.keyring_may_stay);
  io.Flag(plan.proc_is_subset);
  io.List(plan.image_environment, kMaxImageEnvironment, kStringItem<kMaxNameBytes>);
}

Error Bad(std::string_view text) { return Error(Kind::kConfig, Text("cell plan: ", text)); }

bool IsHexId(std::string_view text) {
  return text.size() == kIdLength && std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
         });
}

bool IsAgentName(std::string_view text) {
  auto allowed = [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == '.' || letter == '_' || letter == '-';
  };
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), allowed);
}

Status CheckNames(const CellPlan& plan) {
  if (!IsHexId(plan.run_id)) return Bad("the run id is not 32 lowercase hexadecimal digits");
  if (!IsAgentName(plan.agent)) {
    return Bad(Text("the agent name '", Printable(plan.agent), "' is not [A-Za-z0-9._-]+"));
  }
  if (!plan.home_label.empty() && !IsHexId(plan.home_label)) {
    return Bad("the home label is neither empty nor 32 lowercase hexadecimal digits");
  }
  if (plan.hostname.empty() || plan.hostname.size() > kMaxHostnameBytes ||
      !IsAgentName(plan.hostname)) {
    return Bad(Text("the host name '", Printable(plan.hostname), "' is not 1 to ",
                    kMaxHostnameBytes, " characters of [A-Za-z0-9._-]"));
  }
  if (!IsNormalPath(plan.working_directory)) {
    return Bad(Text("the working directory '", Printable(plan.working_directory),
                    "' is not an absolute path without '.', '..', '//' and trailing '/'"));
  }
  return Ok();
}

Status CheckLimits(const Limits& limits) {
  struct {
    const char* name;
    uint64_t value;
    uint64_t lowest;
    uint64_t highest;
  } const rows[] = {
      {"memory", limits.memory_bytes, 1, kMaxBytes},
      {"pids", limits.pids, kLeastPids, kMaxCount},
      {"cpu", limits.cpu_millis, 1, kMaxCount},
      {"nofile", limits.nofile, kLeastNofile, kMaxCount},
  };
  for (const auto& row : rows) {
    if (row.value == 0) return Bad(Text("the ", row.name, " limit is 0; every limit is required"));
    if (row.value < row.lowest) {
      return Bad(Text("the ", row.name, " limit ", row.value,
                      " is too small: the cell itself takes ", row.lowest,
                      ", programs that start others more"));
    }
    if (row.value > row.highest) {
      return Bad(Text("the ", row.name, " limit ", row.value, " is above ", row.highest));
    }
  }
  if (limits.file_bytes > kMaxBytes) {
    return Bad(Text("the file size limit ", limits.file_bytes, " is above ", kMaxBytes));
  }
  if (limits.io_weight > kMaxIoWeight) {
    return Bad(Text("the io weight ", limits.io_weight, " is above ", kMaxIoWeight));
  }
  if (!limits.cpu_set.empty() && NormalCpuList(limits.cpu_set) != limits.cpu_set) {
    return Bad(Text("the cpu set '", Printable(limits.cpu_set), "' is no list such as 0-2,5"));
  }
  return Ok();
}

Status CheckRoot(const CellPlan& plan) {
  if (plan.uid == 0 || plan.gid == 0) return Bad("uid 0 or gid 0: a cell never runs as root");
  if (plan.uid == ~uint32_t{0} || plan.gid == ~uint32_t{0}) return Bad("an id of -1 is no id");
  if ((plan.root == RootKind::kHost) != plan.root_source.empty()) {
    return Bad("an image or rootfs needs a source, the host root takes none");
  }
  if (plan.root == RootKind::kRootfs && (!IsNormalPath(plan.root_source) || plan.root_inode == 0)) {
    return Bad(Text("the rootfs '", Printable(plan.root_source), "' is not an opened directory"));
  }
  return Ok();
}

Status CheckTunnels(const CellPlan& plan) {
  if (!plan.tunnels || plan.network != NetworkMode::kNone) return Ok();
  return Bad("tunnels without the provider's network, through which they go");
}

// Our own launcher has no bridge to give, and the host's network is no cell's.
Status CheckOpenNetwork(const CellPlan& plan) {
  if (plan.network != NetworkMode::kOpen || plan.root == RootKind::kImage) return Ok();
  return Bad("an open network in a cell that no engine makes");
}

Status CheckFilter(const CellPlan& plan) {
  constexpr std::size_t kInstructionBytes = 8;
  if (plan.filter.size() % kInstructionBytes != 0 || plan.filter.size() > kMaxFilterBytes)
    return Bad(Text("a system call filter of ", plan.filter.size(), " bytes"));
  return Ok();
}

Status CheckTarget(const std::string& target, std::vector<std::string_view>& taken) {
  if (target == "/")
    return Bad("the target '/' is the cell's root itself: choose a place below it");
  if (!IsNormalPath(target)) {
    return Bad(Text("the target '", Printable(target),
                    "' is not an absolute path without '.', '..', '//' and trailing '/'"));
  }
  for (std::string_view top : {"/proc", "/sys", "/dev"}) {
    if (IsAtOrBelow(target, top)) {
      return Bad(Text("the target '", Printable(target), "' is in ", top, ", which is the cell's"));
    }
  }
  if (std::find(taken.begin(), taken.end(), target) != taken.end()) {
    return Bad(Text("two mounts are to be at '", Printable(target),
                    "' (every cell has a /tmp and a /workspace of its own)"));
  }
  taken.push_back(target);
  return Ok();
}

Status CheckMounts(const CellPlan& plan) {
  if (plan.mounts.size() + plan.tmpfs.size() > kMaxPlannedMounts) {
    return Bad(Text("more than ", kMaxPlannedMounts, " mounts"));
  }
  std::vector<std::string_view> taken;
  for (const PlannedMount& mount : plan.mounts) {
    TRY(CheckTarget(mount.target, taken));
    if (!IsNormalPath(mount.source)) {
      return Bad(Text("the source '", Printable(mount.source), "' of '", Printable(mount.target),
                      "' is not an absolute normalised path"));
    }
    if (mount.inode == 0) {
      return Bad(Text("the source '", Printable(mount.source), "' was never opened (inode 0)"));
    }
  }
  for (const PlannedTmpfs& tmpfs : plan.tmpfs) {
    TRY(CheckTarget(tmpfs.target, taken));
    if (tmpfs.size_bytes == 0 || tmpfs.size_bytes > kMaxBytes) {
      return Bad(Text("the tmpfs '", Printable(tmpfs.target), "' has the size ", tmpfs.size_bytes,
                      "; 1 to ", kMaxBytes, " bytes are possible"));
    }
    if ((tmpfs.mode & ~kPermissionBits) != 0) {
      return Bad(Text("the tmpfs '", Printable(tmpfs.target), "' has a mode that is none"));
    }
  }
  return Ok();
}

}  // namespace

bool IsNormalPath(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.size() > kMaxPathBytes) return false;
  if (path == "/") return true;
  if (path.find('\0') != std::string_view::npos) return false;
  for (std::string_view name : Split(path.substr(1), '/')) {
    if (name.empty() || name == "." || name == "..") return false;
  }
  return true;
}

bool IsAtOrBelow(std::string_view path, std::string_view top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

std::size_t ListenerCount(const CellPlan& plan) {
  if (plan.network == NetworkMode::kNone) return 0;
  return plan.tunnels ? 2 : 1;
}

Status CheckPlan(const CellPlan& plan) {
  TRY(CheckNames(plan));
  TRY(CheckRoot(plan));
  TRY(CheckLimits(plan.limits));
  TRY(CheckTunnels(plan));
  TRY(CheckOpenNetwork(plan));
  TRY(CheckFilter(plan));
  return CheckMounts(plan);
}

std::string EncodePlan(const CellPlan& plan) {
  WireWriter writer;
  Fields(writer, plan);
  return writer.Take();
}

Result<CellPlan> ParsePlan(std::string_view bytes) {
  if (bytes.size() > kMaxPlanBytes) {
    return Error(Kind::kViolation, Text("cell plan: more than ", kMaxPlanBytes, " bytes"));
  }
  WireReader reader(bytes);
  CellPlan plan;
  Fields(reader, plan);
  TRY(reader.Finish("cell plan"));
  TRY(CheckPlan(plan));
  return plan;
}

}  // namespace taskcell::cell
