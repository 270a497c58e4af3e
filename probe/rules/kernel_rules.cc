#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cgroup/advice.h"
#include "probe/facts/trials.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

struct Feature {
  std::string_view name;      // of the trial; the row is "kernel.<name>"
  bool needed;                // the launcher cannot do without
  std::string_view setting;   // of a systemd unit that takes it away, "" for none
  std::string_view fallback;  // what the launcher does in its place, "" for nothing
};

constexpr std::string_view kByMount = "cells are mounted by mount(2)";

constexpr Feature kFeatures[] = {
    {"openat2", false, "RestrictSUIDSGID", "paths are walked name by name"},
    {"clone3", false, "", "processes are made by clone"},
    {"clone-into-cgroup", false, "", "a process moves itself into its cgroup"},
    {"pidfd", true, "", "a process is told by its number until it was waited for"},
    {"close-range", true, "", "descriptors are closed one by one"},
    {"landlock", false, "", "a cell's other walls hold without it"},
    {"seccomp-filter", true, "", ""},
    {"seccomp-notify", false, "", ""},
    {"mount-api", true, "", kByMount},
    {"tmpfs", true, "", ""},
    {"mount-setattr", true, "", kByMount},
    {"overlay", false, "", ""},
    {"proc", true, "", ""},
    {"proc-subset", false, "", ""},
    {"idmapped-mounts", false, "", ""},
};

bool Works(const HostFacts& facts, std::string_view name) {
  const Trial* trial = facts.live->Find(name);
  return trial != nullptr && trial->outcome == Outcome::kWorks;
}

// What a cell does where `feature` is refused, "" where there is no cell then. File systems are
// tried by the newer mount calls, so where these are missing nothing is known of the older ones.
std::string_view FallbackOf(const HostFacts& facts, const Feature& feature) {
  const bool is_proc = feature.name == "proc";
  if ((is_proc || feature.name == "tmpfs") && !Works(facts, "mount-api")) return kByMount;
  if (is_proc && Works(facts, "proc-subset")) return "/proc shows a cell's processes alone";
  return feature.fallback;
}

// Who stands behind a refusal, from what else is known of the process.
struct Cause {
  std::string reason;
  Who who = Who::kKernel;
  std::string fix;
};

// A cell needs every kind of namespace but that of time.
bool ForbidsNamespaces(const Unit& unit) {
  std::vector<std::string_view> kinds = ForbiddenNamespaces(unit);
  return std::any_of(kinds.begin(), kinds.end(),
                     [](std::string_view kind) { return kind != "time"; });
}

std::string Setting(const HostFacts& facts, std::string_view name) {
  const std::optional<Unit>& own = facts.systemd.own;
  if (!own || name.empty()) return {};
  bool blocks = name == "RestrictNamespaces" ? ForbidsNamespaces(*own) : own->True("Service", name);
  return blocks ? std::string(own->Last("Service", name)) : std::string();
}

Cause CauseOf(const HostFacts& facts, const Trial& trial, std::string_view setting) {
  std::string error = trial.err == 0 ? std::string() : Text(" (", ErrorName(trial.err), ")");
  if (!Setting(facts, setting).empty()) {
    const std::string& unit = facts.systemd.own->name;
    return {
        Text("taken away by ", setting, "= of ", Printable(unit), error), Who::kAdmin,
        cgroup::DropIn(unit, Text(setting, "=no"), Text("systemctl restart ", ShellWord(unit)))};
  }
  bool filtered = FieldOf(facts.files.File(kStatus).text, "Seccomp") == "2";
  if (filtered)
    return {
        Text("refused", error, "; a system call filter is installed on this process"), Who::kOuter,
        "whoever starts this process must let its filter allow it (in a unit: SystemCallFilter=, "
        "Restrict*=; in a container: --security-opt seccomp=unconfined)"};
  if (trial.outcome == Outcome::kAbsent)
    return {Text("this kernel does not have it", error), Who::kKernel, "boot a newer kernel"};
  if (trial.feature == "proc" || trial.feature == "proc-subset")
    return {
        Text("refused", error,
             "; something is mounted below /proc here, and the kernel shows no new one that would "
             "reveal more"),
        Who::kOuter, "unmask /proc outside (podman run --security-opt unmask=ALL)"};
  return {Text("refused", error, "; no filter is installed, so a security module or a sysctl did"),
          Who::kAdmin,
          "as administrator: look into the kernel's log: dmesg | grep -iE 'apparmor|avc'"};
}

void AddFeature(const HostFacts& facts, const Feature& feature, Report& report) {
  const Trial* trial = facts.live->Find(feature.name);
  if (trial == nullptr) return;
  Finding finding{Text("kernel.", feature.name), Verdict::kReady, "works"};
  if (!trial->detail.empty()) finding.reason += Text(": ", Printable(trial->detail));
  if (trial->outcome == Outcome::kUnknown) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text("not tried: ", Printable(trial->detail));
  } else if (trial->outcome != Outcome::kWorks) {
    Cause cause = CauseOf(facts, *trial, feature.setting);
    std::string_view fallback = FallbackOf(facts, feature);
    finding.verdict = feature.needed && fallback.empty() ? Verdict::kNot : Verdict::kNote;
    finding.reason = Text(feature.name, ": ", cause.reason);
    if (!fallback.empty()) finding.reason += Text("; works without, by fallback: ", fallback);
    finding.who = cause.who;
    finding.fix = cause.fix;
    finding.found.push_back(
        {"trial", Text(Name(trial->outcome), ' ', ErrorName(trial->err), ' ', trial->detail)});
  }
  report.findings.push_back(std::move(finding));
}

void AddRelease(const HostFacts& facts, Report& report) {
  std::string release(facts.files.Line("/proc/sys/kernel/osrelease"));
  std::string name;
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    for (std::string_view line : Split(facts.files.File(path).text, '\n')) {
      if (name.empty() && line.starts_with("PRETTY_NAME=")) name = line.substr(12);
    }
  }
  if (release.empty() && name.empty()) return;
  while (name.starts_with('"') || name.starts_with('\'')) name.erase(0, 1);
  while (name.ends_with('"') || name.ends_with('\'')) name.pop_back();
  report.findings.push_back(
      {"kernel.release", Verdict::kReady,
       Text("Linux ", Printable(release), name.empty() ? "" : ", ", Printable(name))});
}

}  // namespace

std::string BlockingSetting(const HostFacts& facts, std::string_view name) {
  return Setting(facts, name);
}

Evidence BlockingEvidence(const HostFacts& facts, std::string_view name) {
  const UnitSetting& setting = *facts.systemd.own->LastSetting("Service", name);
  return {setting.file, Text(name, '=', setting.value)};
}

void JudgeKernel(const HostFacts& facts, Report& report) {
  AddRelease(facts, report);
  if (!facts.live) return;
  for (const Feature& feature : kFeatures) AddFeature(facts, feature, report);
}

}  // namespace taskcell::probe
