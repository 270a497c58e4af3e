#include "launcher/cgroup/diagnosis.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cgroup/broken.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/limits.h"
#include "launcher/cgroup/unified.h"

namespace taskcell::cgroup {
namespace {

constexpr uint32_t kOverflowId = 65534;  // how an owner shows that this user namespace does not map

bool HasWord(std::string_view text, std::string_view word) {
  std::vector<std::string_view> words = Words(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool MayWrite(const sys::FileSeen& file, const Surroundings& around) {
  if (!file.owner_known) return false;
  if (around.uid == 0) return !around.in_user_namespace || file.uid != kOverflowId;
  if (file.uid == around.uid) return (file.mode & S_IWUSR) != 0;
  const std::vector<uint32_t>& groups = around.groups;
  if (std::find(groups.begin(), groups.end(), file.gid) != groups.end())
    return (file.mode & S_IWGRP) != 0;
  return (file.mode & S_IWOTH) != 0;
}

// The file whose presence tells that the controller is on, and that sets its limit.
const char* LimitFile(bool unified, Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return unified ? "memory.max" : "memory.limit_in_bytes";
    case Controller::kPids:
      return "pids.max";
    case Controller::kCpu:
      return unified ? "cpu.max" : "cpu.cfs_quota_us";
    case Controller::kCpuset:
      return "cpuset.cpus";
    case Controller::kIo:
      return unified ? "io.weight" : "blkio.bfq.weight";
  }
  return "";
}

std::optional<uint64_t> Millis(uint64_t quota_us, uint64_t period_us) {
  if (quota_us == kUnlimited) return kUnlimited;
  if (period_us == 0 || quota_us > UINT64_MAX / 1000) return std::nullopt;
  return quota_us * 1000 / period_us;
}

// The limit one level sets; nullopt where its file says none, or cannot be read.
std::optional<uint64_t> LimitOf(const Level& level, bool unified, Controller controller) {
  const sys::FileSeen& file = level.File(LimitFile(unified, controller));
  if (file.absent()) return kUnlimited;
  if (!file.present()) return std::nullopt;
  if (controller != Controller::kCpu) return ParseLimit(Trim(file.text));
  std::string text =
      unified ? file.text : Text(file.text, ' ', level.File("cpu.cfs_period_us").text);
  std::vector<std::string_view> words = Words(text);
  if (words.size() != 2) return std::nullopt;
  std::optional<uint64_t> quota = ParseLimit(words[0]);
  std::optional<uint64_t> period = ParseUnsigned(words[1]);
  if (!quota || !period) return std::nullopt;
  return Millis(*quota, *period);
}

// Whether the kernel's command line switches a controller off: cgroup_disable=memory,hugetlb.
bool IsOffAtBoot(std::string_view command_line, std::string_view controller) {
  constexpr std::string_view kDisable = "cgroup_disable=";
  for (std::string_view word : Words(command_line)) {
    if (!word.starts_with(kDisable)) continue;
    std::vector<std::string_view> names = Split(word.substr(kDisable.size()), ',');
    if (std::find(names.begin(), names.end(), controller) != names.end()) return true;
  }
  return false;
}

class Judge {
 public:
  explicit Judge(const Question& question)
      : chain_(question.chain), around_(question.around), controller_(question.controller) {}

  Broken Decide();
  const std::string& place() const { return place_; }

 private:
  std::string_view name() const { return Name(controller_); }
  bool unified() const { return chain_.hierarchy.unified; }

  Broken DecideV1();
  Broken DecideUnified();
  Broken Delegated(const Level& level);
  Broken Controls(const Level& level);
  Broken LimitFiles(const Level& level) const;
  Broken OfferedAtRoot(const Level& root) const;
  Broken HandedOn(const std::vector<Level>& levels, std::size_t last) const;
  Broken OneLevel(const std::vector<Level>& levels, std::size_t at, std::size_t last) const;
  Broken Whole(const std::vector<Level>& levels, std::size_t last);
  Broken Own();
  Broken Prepared();
  Broken ForRoot(const Level& root);

  const Chain& chain_;
  const Surroundings& around_;
  Controller controller_;
  std::string place_;
};

Broken Judge::Decide() {
  const Hierarchy& hierarchy = chain_.hierarchy;
  if (hierarchy.mount_point.empty()) return {Fault::kNotMounted};
  const Level* mounted = chain_.levels.empty() ? nullptr : &chain_.levels.front();
  if (chain_.covered) return {Fault::kCovered, mounted};
  if (hierarchy.read_only) return {Fault::kReadOnly, mounted};
  return unified() ? DecideUnified() : DecideV1();
}

// The directory is the user's own, and nobody else's: as the launcher asks before it uses one.
Broken Judge::Delegated(const Level& level) {
  const sys::FileSeen& directory = level.directory;
  if (!directory.owner_known) return {Fault::kUnreadable, &level};
  if (around_.uid != 0 && directory.uid != around_.uid) return {Fault::kNotDelegated, &level};
  if (around_.uid != 0 && (directory.mode & (S_IWGRP | S_IWOTH)) != 0)
    return {Fault::kWritableByOthers, &level};
  if (!MayWrite(directory, around_)) return {Fault::kNotDelegated, &level};
  return {};
}

Broken Judge::LimitFiles(const Level& level) const {
  const char* file = LimitFile(unified(), controller_);
  const sys::FileSeen& limit = level.File(file);
  const Hierarchy& hierarchy = chain_.hierarchy;
  // The root of a v1 hierarchy limits nothing itself, and need not have the file.
  bool v1_root = !unified() && hierarchy.mount_root == "/" && level.path == hierarchy.mount_point;
  if (limit.absent() && !v1_root) {
    // The controller is here, so the file must be; a kernel can lack that of processor time alone.
    if (controller_ == Controller::kCpu) return {Fault::kNoBandwidth, &level, file};
    return {unified() ? Fault::kContradiction : Fault::kUnreadable, &level, file};
  }
  if (!limit.absent() && !limit.present()) return {Fault::kUnreadable, &level, file};
  const char* swap = unified() ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
  if (controller_ == Controller::kMemory && around_.host_has_swap && limit.present() &&
      level.File(swap).absent())
    return {Fault::kSwapUnaccounted, &level, swap};
  return {};
}

Broken Judge::DecideV1() {
  Broken own{Fault::kNotVisible};
  if (!chain_.levels.empty()) {
    const Level& level = chain_.levels.back();
    own = Delegated(level);
    if (own.fault == Fault::kNone) own = LimitFiles(level);
    if (own.fault == Fault::kNone) place_ = level.path;
    if (own.fault == Fault::kNone) return own;
  }
  constexpr std::size_t kWhole = 2;
  if (chain_.prepared.size() == kWhole) {
    const Level& level = chain_.prepared.back();
    Broken prepared = Delegated(level);
    if (prepared.fault == Fault::kNone) prepared = LimitFiles(level);
    if (prepared.fault == Fault::kNone) place_ = level.path;
    if (prepared.fault != Fault::kNotDelegated) return prepared;
  }
  bool handed_over = own.fault == Fault::kSwapUnaccounted || own.fault == Fault::kNoBandwidth;
  if (handed_over || own.fault == Fault::kUnreadable) return own;
  return {Fault::kUnmanagedV1, own.level};
}

Broken Judge::OfferedAtRoot(const Level& root) const {
  if (chain_.mounted_below_root() || chain_.hierarchy.mount_root != "/")
    return {Fault::kNotPassedIn, &root, "cgroup.controllers"};
  if (IsOffAtBoot(around_.command_line, name()))
    return {Fault::kOffAtBoot, &root, "cgroup.controllers"};
  for (std::string_view line : Split(around_.kernel_cgroups, '\n')) {
    std::vector<std::string_view> words = Words(line);  // name, hierarchy, cgroups, enabled
    if (words.size() != 4 || words[0] != name()) continue;
    if (words[3] == "0") return {Fault::kOffAtBoot, &root, "cgroup.controllers"};
    if (words[1] != "0") return {Fault::kHeldByV1, &root, "cgroup.controllers"};
  }
  return {Fault::kNotOffered, &root, "cgroup.controllers"};
}

// Room for the cell's two cgroups below the last level; 0 or more levels lie between.
bool IsFull(const Level& level, std::size_t levels_between) {
  constexpr uint64_t kCellLevels = 2;
  auto number = [&](std::string_view file) { return ParseUnsigned(Trim(level.File(file).text)); };
  std::optional<uint64_t> depth = number("cgroup.max.depth");
  if (depth && *depth < levels_between + kCellLevels) return true;
  std::optional<uint64_t> most = number("cgroup.max.descendants");
  std::optional<uint64_t> now = ValueOf(level.File("cgroup.stat").text, "nr_descendants");
  return most && now && (*most < kCellLevels || *now > *most - kCellLevels);
}

Broken Judge::OneLevel(const std::vector<Level>& levels, std::size_t at, std::size_t last) const {
  const Level& level = levels[at];
  if (!level.directory.present()) return {Fault::kUnreadable, &level};
  const sys::FileSeen& type = level.File("cgroup.type");
  if (!type.present() && (at > 0 || !type.absent()))
    return {Fault::kUnreadable, &level, "cgroup.type"};
  if (type.present() && Trim(type.text) != "domain")
    return {Fault::kThreaded, &level, "cgroup.type"};
  const sys::FileSeen& offered = level.File("cgroup.controllers");
  if (!offered.present()) return {Fault::kUnreadable, &level, "cgroup.controllers"};
  if (!HasWord(offered.text, name())) {
    if (at == 0) return OfferedAtRoot(level);
    return {Fault::kContradiction, &level, "cgroup.controllers"};  // the level above hands it on
  }
  if (Trim(level.File("cgroup.freeze").text) == "1")
    return {Fault::kFrozen, &level, "cgroup.freeze"};
  if (IsFull(level, last - at)) return {Fault::kFull, &level, "cgroup.max.descendants"};
  if (at == last) return {};
  const sys::FileSeen& handed = level.File("cgroup.subtree_control");
  if (!handed.present()) return {Fault::kUnreadable, &level, "cgroup.subtree_control"};
  if (HasWord(handed.text, name())) return {};
  if (HasWord(levels[at + 1].File("cgroup.controllers").text, name()))
    return {Fault::kContradiction, &level, "cgroup.subtree_control"};
  return {Fault::kNotHandedOn, &level, "cgroup.subtree_control"};
}

Broken Judge::HandedOn(const std::vector<Level>& levels, std::size_t last) const {
  for (std::size_t at = 0; at <= last; ++at) {
    Broken broken = OneLevel(levels, at, last);
    if (broken.fault != Fault::kNone) return broken;
  }
  return {};
}

Broken Judge::Controls(const Level& level) {
  bool is_root = !level.File("cgroup.type").present();
  if (is_root) return {};  // it may hold processes, and only root owns it
  for (const char* name : {"cgroup.procs", "cgroup.subtree_control"}) {
    const sys::FileSeen& file = level.File(name);
    if (!file.owner_known) return {Fault::kUnreadable, &level, name};
    if (!MayWrite(file, around_)) return {Fault::kControlNotDelegated, &level, name};
  }
  // A process of an outer pid namespace shows as 0.
  if (HasWord(level.File("cgroup.procs").text, "0"))
    return {Fault::kForeignProcesses, &level, "cgroup.procs"};
  return LimitFiles(level);
}

Broken Judge::Whole(const std::vector<Level>& levels, std::size_t last) {
  Broken broken = HandedOn(levels, last);
  if (broken.fault == Fault::kNone) broken = Delegated(levels[last]);
  if (broken.fault == Fault::kNone) broken = Controls(levels[last]);
  if (broken.fault == Fault::kNone) place_ = levels[last].path;
  return broken;
}

// Root leaves a cgroup alone that a service manager made: it makes its own below what is mounted.
Broken Judge::ForRoot(const Level& root) {
  Broken broken = OneLevel(chain_.levels, 0, 0);
  if (broken.fault == Fault::kNone) broken = Delegated(root);
  if (broken.fault != Fault::kNone) return broken;
  bool busy = chain_.mounted_below_root() && !Trim(root.File("cgroup.procs").text).empty();
  if (busy) return {Fault::kBusyRoot, &root, "cgroup.procs"};
  place_ = Text(root.path, "/taskcell/uid-0");
  return {};
}

Broken Judge::Own() {
  if (chain_.levels.empty()) return {Fault::kNotVisible};
  std::size_t last = chain_.levels.size() - 1;
  std::string_view path = chain_.levels[last].path;
  bool in_supervisor = last > 0 && path.substr(path.rfind('/') + 1) == kSupervisor;
  if (in_supervisor) return Whole(chain_.levels, last - 1);
  if (around_.uid == 0 && last > 0) return ForRoot(chain_.levels.front());
  return Whole(chain_.levels, last);
}

Broken Judge::Prepared() {
  constexpr std::size_t kWhole = 2;
  if (around_.uid == 0 || chain_.prepared.size() != kWhole || chain_.levels.empty())
    return {Fault::kNotVisible};
  std::vector<Level> levels = {chain_.levels.front(), chain_.prepared[0], chain_.prepared[1]};
  std::string before = place_;
  Broken broken = Whole(levels, kWhole);
  broken.level = nullptr;  // `levels` ends here
  if (broken.fault != Fault::kNone || MayWrite(levels[0].File("cgroup.procs"), around_))
    return broken;
  place_ = before;
  return {Fault::kOutOfReach, &chain_.prepared.back()};
}

Broken Judge::DecideUnified() {
  Broken own = Own();
  if (own.fault == Fault::kNone) return own;
  Broken prepared = Prepared();
  if (prepared.fault == Fault::kNone) return prepared;
  bool could_move = own.fault == Fault::kNotDelegated || own.fault == Fault::kNotHandedOn;
  return could_move && prepared.fault == Fault::kOutOfReach ? prepared : own;
}

void FindOuterLimit(const Question& question, Diagnosis& diagnosis) {
  bool unified = question.chain.hierarchy.unified;
  const char* file = LimitFile(unified, question.controller);
  for (const Level& level : question.chain.levels) {
    std::optional<uint64_t> limit = LimitOf(level, unified, question.controller);
    if (!limit) {
      if (diagnosis.fault == Fault::kNone) {
        bool read = level.File(file).present();
        Fault fault = read ? Fault::kContradiction : Fault::kUnreadable;
        Explain(question, {fault, &level, file}, diagnosis);
        diagnosis.place.clear();
      }
      continue;
    }
    if (*limit == kUnlimited) continue;
    if (diagnosis.outer_limit && *diagnosis.outer_limit <= *limit) continue;
    diagnosis.outer_limit = limit;
    diagnosis.outer_file = level.FilePath(file);
  }
}

}  // namespace

std::string_view Name(LimitState state) {
  switch (state) {
    case LimitState::kYes:
      return "yes";
    case LimitState::kNo:
      return "no";
    case LimitState::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view Name(Who who) {
  switch (who) {
    case Who::kNone:
      return "none";
    case Who::kUser:
      return "user";
    case Who::kAdmin:
      return "admin";
    case Who::kOuter:
      return "outer";
    case Who::kKernel:
      return "kernel";
  }
  return "";
}

Diagnosis DiagnoseChain(const Chain& chain, const Surroundings& around, Controller controller) {
  Question question{chain, around, controller};
  Judge judge(question);
  Broken broken = judge.Decide();
  Diagnosis diagnosis;
  Explain(question, broken, diagnosis);
  if (broken.fault == Fault::kNone) diagnosis.place = judge.place();
  FindOuterLimit(question, diagnosis);
  return diagnosis;
}

Diagnosis Diagnose(const Situation& situation, Controller controller) {
  Diagnosis diagnosis;
  if (!situation.problem.empty()) {
    diagnosis.fault = Fault::kUnreadable;
    diagnosis.state = LimitState::kUnknown;
    diagnosis.reason = situation.problem;
    return diagnosis;
  }
  if (const Chain* chain = situation.Find(Name(controller)))
    return DiagnoseChain(*chain, situation.around, controller);
  static const Chain kNowhere;
  return DiagnoseChain(kNowhere, situation.around, controller);
}

}  // namespace taskcell::cgroup
