#include <sys/stat.h>

#include <algorithm>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/cell/compare_parts.h"
#include "launcher/cell/engine_additions.h"

namespace taskcell::cell {
namespace {

constexpr uint32_t kPermissionBits = 07777;
constexpr std::string_view kAgentTarget = "/agent";

// Everything mounted in the cell: each line of mountinfo with what init found at its mount point.
struct Mounted {
  MountInfoLine line;
  MountSeen seen;
};

class MountComparison {
 public:
  MountComparison(const CellPlan& plan, Engine engine, const InsideAttestation& seen,
                  std::vector<Mounted> mounts, Mismatches& found)
      : plan_(plan), engine_(engine), seen_(seen), mounts_(std::move(mounts)), found_(found) {}

  void Run();

 private:
  void CompareRoot();
  void ComparePlanned(const PlannedMount& planned);
  void CompareTmpfs(const PlannedTmpfs& planned);
  void CompareProc();
  void CompareRest();
  void CompareUnplanned(const Mounted& mount);

  // The one mount at `target`, or null after adding what is wrong under `field`.
  const Mounted* TheOneAt(const std::string& target, const std::string& field,
                          std::string_view planned);
  // Adds what is wrong with how `mount` is mounted; true where nothing is.
  bool CompareOptions(const Mounted& mount, bool read_only, bool exec, const std::string& field);
  bool IsTmpfsMode(const PlannedTmpfs& planned, uint32_t mode) const;
  std::string WhyNotTmpfs(const Mounted& mount, const PlannedTmpfs& planned) const;
  uint64_t TmpfsSize(const std::string& target) const;
  bool IsPlanned(const std::string& target) const;
  const PlannedMount* PlannedAbove(const std::string& target) const;

  const CellPlan& plan_;
  Engine engine_;
  const InsideAttestation& seen_;
  std::vector<Mounted> mounts_;
  Mismatches& found_;
};

void MountComparison::Run() {
  CompareRoot();
  for (const PlannedMount& planned : plan_.mounts) ComparePlanned(planned);
  for (const PlannedTmpfs& planned : plan_.tmpfs) CompareTmpfs(planned);
  CompareProc();
  CompareRest();
}

const Mounted* MountComparison::TheOneAt(const std::string& target, const std::string& field,
                                         std::string_view planned) {
  const Mounted* one = nullptr;
  for (const Mounted& mount : mounts_) {
    if (mount.line.mount_point != target) continue;
    if (one != nullptr) {
      found_.Add(field, std::string(planned), "two mounts on one place");
      return nullptr;
    }
    one = &mount;
  }
  if (one == nullptr) found_.Add(field, std::string(planned), "not mounted");
  return one;
}

bool IsShared(const MountInfoLine& line) {
  return std::any_of(line.optional_fields.begin(), line.optional_fields.end(),
                     [](const std::string& each) { return each.starts_with("shared:"); });
}

void MountComparison::CompareRoot() {
  const Mounted* root = TheOneAt("/", "root", "mounted");
  if (root == nullptr) return;
  if (!HasMountOption(root->line.options, "ro")) {
    found_.Add("root.readonly", "ro", root->line.options);
  }
  // An engine's root may receive the host's unmounts (master:), never send its own.
  if (IsShared(root->line)) found_.Add("root.propagation", "private", "shared");
  bool is_host = plan_.root == RootKind::kHost;
  if (is_host && root->line.type != "tmpfs") {
    found_.Add("root.identity", "a tmpfs of the launcher", Printable(root->line.type));
  }
  bool same = root->seen.device == plan_.root_device && root->seen.inode == plan_.root_inode;
  if (plan_.root == RootKind::kRootfs && !same) {
    found_.Add("root.identity", Text("device ", plan_.root_device, " inode ", plan_.root_inode),
               Text("device ", root->seen.device, " inode ", root->seen.inode));
  }
  if (engine_ != Engine::kNative) return;
  for (std::string_view option : {"nosuid", "nodev"}) {
    if (!HasMountOption(root->line.options, option)) {
      found_.Add("root.options", std::string(option), root->line.options);
    }
  }
}

bool MountComparison::CompareOptions(const Mounted& mount, bool read_only, bool exec,
                                     const std::string& field) {
  const std::string& options = mount.line.options;
  std::string wrong;
  if (HasMountOption(options, "ro") != read_only) wrong = read_only ? "read-write" : "read-only";
  if (!exec && !HasMountOption(options, "noexec")) wrong = "without noexec";
  // A host mount event arriving in the cell, or one of the cell leaving it.
  if (!mount.line.optional_fields.empty()) wrong = mount.line.optional_fields[0];
  if (wrong.empty()) return true;
  found_.Add(field, read_only ? "read-only, private" : "read-write, private", wrong);
  return false;
}

void MountComparison::ComparePlanned(const PlannedMount& planned) {
  std::string field = Text("mount:", Printable(planned.target));
  std::string wanted = Text("device ", planned.device, " inode ", planned.inode, " of '",
                            Printable(planned.source), "'");
  const Mounted* mount = TheOneAt(planned.target, field, wanted);
  if (mount == nullptr) return;
  const MountSeen& seen = mount->seen;
  if (seen.open_error != 0) {
    return found_.Add(field, wanted, Text("it cannot be opened, error ", seen.open_error));
  }
  if (seen.device != planned.device || seen.inode != planned.inode) {
    return found_.Add(field, wanted, Text("device ", seen.device, " inode ", seen.inode));
  }
  bool right = planned.kind == EntryKind::kDirectory ? S_ISDIR(seen.mode) : S_ISREG(seen.mode);
  if (!right) return found_.Add(field, wanted, "another kind of file");
  if (mount->line.root.ends_with("//deleted")) {
    return found_.Add(field, wanted, "a deleted file");
  }
  if (!CompareOptions(*mount, !planned.writable, true, field) || engine_ != Engine::kNative) return;
  for (std::string_view option : {"nosuid", "nodev", "nosymfollow"}) {
    if (option == "nosymfollow" && planned.follows_links) continue;
    if (!HasMountOption(mount->line.options, option)) {
      found_.Add(field, std::string(option), mount->line.options);
    }
  }
}

// That kernels before 5.8 show as a number.
bool HidesProcesses(const std::string& super_options) {
  return HasMountOption(super_options, "hidepid=invisible") ||
         HasMountOption(super_options, "hidepid=2");
}

// A /proc that shows other processes, or a whole one where its processes alone were asked for; the
// other way round the launcher says so.
void MountComparison::CompareProc() {
  if (engine_ != Engine::kNative) return;
  auto proc = std::find_if(mounts_.begin(), mounts_.end(),
                           [](const Mounted& each) { return each.line.mount_point == "/proc"; });
  if (proc == mounts_.end()) return found_.Add("proc", "mounted", "not mounted");
  const std::string& options = proc->line.super_options;
  if (!HidesProcesses(options)) found_.Add("proc", "hidepid=invisible", options);
  if (plan_.proc_is_subset && !HasMountOption(options, "subset=pid"))
    found_.Add("proc", "subset=pid", options);
}

uint64_t MountComparison::TmpfsSize(const std::string& target) const {
  for (const TmpfsSeen& each : seen_.tmpfs) {
    if (each.target == target) return each.size_bytes;
  }
  return 0;
}

// The kernel rounds a tmpfs up to whole pages.
bool IsTmpfsSize(uint64_t planned, uint64_t seen) {
  for (uint64_t page : {4096U, 16384U, 65536U}) {
    if (seen == (planned + page - 1) / page * page) return true;
  }
  return false;
}

// runc gives a tmpfs the mode of the image's own directory at that place, where there is one. What
// it lets others do is nothing in a cell, which has one user; the owner must be able to use it.
bool MountComparison::IsTmpfsMode(const PlannedTmpfs& planned, uint32_t mode) const {
  constexpr uint32_t kOwner = 0700;
  if (mode == planned.mode) return true;
  if (engine_ == Engine::kNative) return false;
  return planned.read_only || (mode & kOwner) == kOwner;
}

std::string MountComparison::WhyNotTmpfs(const Mounted& mount, const PlannedTmpfs& planned) const {
  const MountInfoLine& line = mount.line;
  if (line.type != "tmpfs" || line.root != "/") return Text("a ", Printable(line.type));
  if (mount.seen.open_error != 0) return "it cannot be opened";
  for (std::string_view option : {"nosuid", "nodev"}) {
    if (!HasMountOption(line.options, option)) return Text("without ", option);
  }
  if (planned.exec && HasMountOption(line.options, "noexec")) return "noexec";
  uint64_t size = TmpfsSize(planned.target);
  if (!IsTmpfsSize(planned.size_bytes, size)) return Text(size, " bytes");
  uint32_t mode = mount.seen.mode & kPermissionBits;
  return IsTmpfsMode(planned, mode) ? "" : Text("mode ", mode, " (decimal)");
}

void MountComparison::CompareTmpfs(const PlannedTmpfs& planned) {
  std::string field = Text("tmpfs:", Printable(planned.target));
  std::string wanted = Text("a tmpfs of ", planned.size_bytes, " bytes, mode ", planned.mode,
                            " (decimal)", planned.exec ? ", exec" : ", noexec");
  const Mounted* mount = TheOneAt(planned.target, field, wanted);
  if (mount == nullptr) return;
  std::string wrong = WhyNotTmpfs(*mount, planned);
  if (!wrong.empty()) return found_.Add(field, wanted, wrong);
  (void)CompareOptions(*mount, planned.read_only, planned.exec, field);
}

bool MountComparison::IsPlanned(const std::string& target) const {
  auto at = [&](const auto& each) { return each.target == target; };
  return target == "/" || std::any_of(plan_.mounts.begin(), plan_.mounts.end(), at) ||
         std::any_of(plan_.tmpfs.begin(), plan_.tmpfs.end(), at);
}

// None for what is below the agent directory: it is a copy, in which nothing is mounted.
const PlannedMount* MountComparison::PlannedAbove(const std::string& target) const {
  for (const PlannedMount& mount : plan_.mounts) {
    if (mount.target == kAgentTarget) continue;
    if (mount.kind == EntryKind::kDirectory && target.starts_with(mount.target + "/")) {
      return &mount;
    }
  }
  return nullptr;
}

// The launcher takes a directory with the file systems mounted below it, under the same attributes;
// of an engine nothing of the kind was asked.
std::string WhyNotSubmount(const PlannedMount& above, const MountInfoLine& line) {
  for (std::string_view option : {"nosuid", "nodev", "ro", "nosymfollow"}) {
    if (option == "ro" && above.writable) continue;
    if (option == "nosymfollow" && above.follows_links) continue;
    if (!HasMountOption(line.options, option)) return Text("mounted without ", option);
  }
  return line.optional_fields.empty() ? "" : line.optional_fields[0];
}

void MountComparison::CompareUnplanned(const Mounted& mount) {
  const std::string& target = mount.line.mount_point;
  const Addition* addition = FindAddition(engine_, plan_.root, target);
  const PlannedMount* above = engine_ == Engine::kNative ? PlannedAbove(target) : nullptr;
  std::string wrong;
  if (addition != nullptr) {
    wrong = WhyNotAddition(*addition, mount.line, mount.seen);
  } else if (above != nullptr) {
    wrong = WhyNotSubmount(*above, mount.line);
  } else {
    wrong = Text(Printable(mount.line.type), ", ", mount.line.options);
  }
  if (!wrong.empty()) found_.Add(Text("mount:", Printable(target)), "nothing of the kind", wrong);
}

void MountComparison::CompareRest() {
  for (std::size_t index = 0; index < mounts_.size(); ++index) {
    const std::string& target = mounts_[index].line.mount_point;
    if (IsPlanned(target)) continue;
    bool again = std::any_of(mounts_.begin(), mounts_.begin() + static_cast<std::ptrdiff_t>(index),
                             [&](const Mounted& each) { return each.line.mount_point == target; });
    if (again) {
      found_.Add(Text("mount:", Printable(target)), "one mount", "two mounts on one place");
    } else {
      CompareUnplanned(mounts_[index]);
    }
  }
}

}  // namespace

void CompareMounts(const CellPlan& plan, Engine engine, const InsideAttestation& seen,
                   Mismatches& found) {
  Result<std::vector<MountInfoLine>> lines = ParseMountInfo(seen.mountinfo);
  if (!lines.ok()) return found.Add("mountinfo", "well formed", lines.error().text);
  // init looks at the mount points in the order of mountinfo, one by one.
  bool complete = lines->size() == seen.mounts.size();
  std::vector<Mounted> mounts;
  for (std::size_t index = 0; complete && index < seen.mounts.size(); ++index) {
    complete = seen.mounts[index].target == lines.value()[index].mount_point;
    mounts.push_back({std::move(lines.value()[index]), seen.mounts[index]});
  }
  if (!complete) {
    return found.Add("mountinfo", "every mount looked at", "mounts without their inode");
  }
  MountComparison(plan, engine, seen, std::move(mounts), found).Run();
}

}  // namespace taskcell::cell
