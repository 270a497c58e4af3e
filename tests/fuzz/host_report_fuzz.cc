// A whole host whose files hold anything: the parts of the input, divided by NUL bytes, take the
// place of a good host's files one after the other. An archive of it gives the same verdicts.
#include "launcher/base/json_value.h"
#include "probe/facts/bundle.h"
#include "probe/print/cgroup_tree.h"
#include "probe/print/print.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/probe/rules/good_host.h"

namespace {

using taskcell::probe::GoodHost;

bool IsPrintable(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return false;
  }
  return true;
}

// What an archive of the host says must not differ, but for what it quotes.
void RequireSameFromArchive(GoodHost& host, const taskcell::probe::Report& report) {
  using namespace taskcell::probe;
  RecordingTree recording(host);
  (void)ReadHostFacts(recording, {});  // ignoring: the tree records it
  Bundle bundle;
  bundle.record = recording.record();
  RecordedTree archived(ReadBundle(WriteBundle(bundle).value()).value().record);
  Report again = Judge(ReadHostFacts(archived, {}));
  taskcell::fuzz::Require(recording.missed().empty() && archived.missed().empty());
  taskcell::fuzz::Require(again.verdict == report.verdict && again.mode == report.mode);
  for (std::size_t i = 0; i < report.limits.size(); ++i)
    taskcell::fuzz::Require(again.limits[i].fault == report.limits[i].fault);
  taskcell::fuzz::Require(again.userns.state == report.userns.state);
  taskcell::fuzz::Require(again.subids.state == report.subids.state);
  taskcell::fuzz::Require(again.findings.size() == report.findings.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  using namespace taskcell::probe;
  const std::string paths[] = {"/proc/self/cgroup",
                               "/proc/self/mountinfo",
                               "/proc/self/status",
                               GoodHost::kScope + "/cgroup.type",
                               GoodHost::kScope + "/cgroup.controllers",
                               GoodHost::kSlice + "/cgroup.subtree_control",
                               GoodHost::kScope + "/memory.max",
                               GoodHost::kScope + "/cpu.max",
                               GoodHost::kScope + "/cgroup.procs",
                               "/proc/cgroups",
                               "/proc/cmdline",
                               "/etc/os-release",
                               "/etc/passwd",
                               "/etc/subuid",
                               "/etc/group",
                               "/etc/systemd/system/user@.service.d/x.conf",
                               "/proc/sys/kernel/core_pattern",
                               "/proc/sys/fs/protected_symlinks"};
  std::string_view input = fuzz::TextOf(data, size);
  GoodHost host;
  for (const std::string& path : paths) {
    std::string_view part = input.substr(0, input.find('\0'));
    if (!part.empty()) host.Put(path, part);
    input.remove_prefix(std::min(part.size() + 1, input.size()));
  }
  Report report = host.Report();
  fuzz::Require(ParseJson(JsonOf(report)).ok());
  fuzz::Require(IsPrintable(TableOf(report, {})));
  CgroupView view = ViewOf(cgroup::ReadSituation(host, {}));
  fuzz::Require(ParseJson(CgroupJson(view)).ok());
  fuzz::Require(IsPrintable(CgroupTree(view, {})));
  // A yes always comes with the place, a no with somebody and a reason.
  for (const cgroup::Diagnosis& limit : report.limits) {
    fuzz::Require((limit.state == cgroup::LimitState::kYes) == !limit.place.empty());
    if (limit.state == cgroup::LimitState::kNo)
      fuzz::Require(!limit.reason.empty() && !limit.fix.empty() && limit.who != Who::kNone);
  }
  RequireSameFromArchive(host, report);
  return 0;
}
