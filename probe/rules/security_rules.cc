#include "launcher/base/text.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

// A sysctl that ought to be at least `least`, for hosts on which others have accounts.
struct Sysctl {
  std::string_view id;
  std::string_view path;
  uint64_t least;
  std::string_view below;  // what it means when it is less
};

constexpr Sysctl kSysctls[] = {
    {"security.links", "/proc/sys/fs/protected_symlinks", 1,
     "symbolic links of others are followed in sticky directories such as /tmp"},
    {"security.links", "/proc/sys/fs/protected_hardlinks", 1,
     "hard links to files of others can be made"},
    {"security.links", "/proc/sys/fs/protected_fifos", 1,
     "FIFOs of others are opened in sticky directories"},
    {"security.links", "/proc/sys/fs/protected_regular", 1,
     "files of others are opened for writing in sticky directories"},
    {"security.ptrace", "/proc/sys/kernel/yama/ptrace_scope", 1,
     "any process of a user can trace all others of that user"},
    {"security.bpf", "/proc/sys/kernel/unprivileged_bpf_disabled", 1,
     "ordinary users may load BPF programs"},
};

std::string NameOf(std::string_view path) {
  std::string name(path.substr(std::string_view("/proc/sys/").size()));
  for (char& c : name) c = c == '/' ? '.' : c;
  return name;
}

void AddSysctls(const HostFacts& facts, std::string_view id, std::string_view good,
                Report& report) {
  Finding finding{std::string(id), Verdict::kReady, std::string(good)};
  std::string reasons;
  for (const Sysctl& each : kSysctls) {
    if (each.id != id || !facts.files.File(each.path).present()) continue;
    std::string_view value = facts.files.Line(each.path);
    finding.found.push_back({std::string(each.path), std::string(value)});
    std::optional<uint64_t> number = ParseUnsigned(value);
    if (number && *number >= each.least) continue;
    reasons += Text(reasons.empty() ? "" : "; ", NameOf(each.path), " is ", Printable(value), ": ",
                    each.below);
    finding.fix += Text(finding.fix.empty() ? "as administrator: sysctl -w" : "", ' ',
                        NameOf(each.path), '=', each.least);
  }
  if (finding.found.empty()) return;
  if (!reasons.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason = reasons;
    finding.who = Who::kAdmin;
  }
  report.findings.push_back(std::move(finding));
}

// Without Yama there is no sysctl to look at, and nothing restricts tracing.
void AddTracing(const HostFacts& facts, Report& report) {
  constexpr std::string_view kScope = "/proc/sys/kernel/yama/ptrace_scope";
  bool sysctls_seen = facts.files.File("/proc/sys/kernel/osrelease").present();
  if (facts.files.File(kScope).absent() && sysctls_seen) {
    report.findings.push_back(
        {"security.ptrace",
         Verdict::kNote,
         "the security module Yama is not active: any process of a user can trace all others of "
         "that user",
         Who::kAdmin,
         "as administrator: boot with yama among the modules of lsm= on the kernel's command line "
         "(a kernel built with CONFIG_SECURITY_YAMA)",
         {{std::string(kScope), "missing"}}});
    return;
  }
  AddSysctls(facts, "security.ptrace", "tracing is restricted to descendants", report);
}

void AddModules(const HostFacts& facts, Report& report) {
  std::string modules(facts.files.Line("/sys/kernel/security/lsm"));
  if (modules.empty()) return;
  Finding finding{"security.modules",
                  Verdict::kReady,
                  Text("security modules: ", Printable(modules)),
                  Who::kNone,
                  "",
                  {{"/sys/kernel/security/lsm", modules}}};
  if (facts.files.Line("/sys/fs/selinux/enforce") == "1") {
    finding.verdict = Verdict::kNote;
    finding.reason +=
        "; SELinux enforces: it can refuse a cgroup that is the user's own, or an "
        "unlabelled mount, and says so in the audit log only";
    finding.who = Who::kAdmin;
    finding.fix =
        "as administrator, where a refusal shows (ausearch -m avc -ts recent): setsebool -P "
        "container_manage_cgroup on";
  }
  report.findings.push_back(std::move(finding));
}

void AddCorePattern(const HostFacts& facts, Report& report) {
  constexpr std::string_view kPath = "/proc/sys/kernel/core_pattern";
  if (!facts.files.File(kPath).present()) return;
  // Behind the first word stand the arguments of the program it is piped to.
  std::vector<std::string_view> words = Words(facts.files.File(kPath).text);
  std::string pattern(words.empty() ? std::string_view() : words.front());
  Finding finding{"security.core-pattern",
                  Verdict::kReady,
                  "core dumps stay where the process is",
                  Who::kNone,
                  "",
                  {{std::string(kPath), pattern}}};
  if (pattern.starts_with('|') || pattern.starts_with('/'))
    finding.reason =
        "core dumps go to the host; cells make none (RLIMIT_CORE is 1, which stops a handler too)";
  report.findings.push_back(std::move(finding));
}

void AddOwnConfinement(const HostFacts& facts, Report& report) {
  const std::string& status = facts.files.File(kStatus).text;
  std::string_view filter = FieldOf(status, "Seccomp");
  std::string_view privileges = FieldOf(status, "NoNewPrivs");
  if (filter.empty()) return;
  Finding finding{
      "security.own-filter",
      Verdict::kReady,
      "no system call filter is installed on this process",
      Who::kNone,
      "",
      {{std::string(kStatus), Text("Seccomp: ", filter, ", NoNewPrivs: ", privileges)}}};
  if (filter != "0") {
    finding.verdict = Verdict::kNote;
    finding.reason = "a system call filter is installed on this process: refusals may be its own";
  }
  report.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeSecurity(const HostFacts& facts, Report& report) {
  AddModules(facts, report);
  AddOwnConfinement(facts, report);
  AddSysctls(facts, "security.links",
             "links and files of others are protected in sticky directories", report);
  AddTracing(facts, report);
  AddSysctls(facts, "security.bpf", "ordinary users may load no BPF programs", report);
  AddCorePattern(facts, report);
}

}  // namespace taskcell::probe
