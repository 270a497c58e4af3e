// The parsers of single files of a host: unit files, subuid, the tables of sockets, live facts; and
// what of each file is recorded.
#include "probe/facts/engine_facts.h"
#include "probe/facts/live_facts.h"
#include "probe/facts/reduce.h"
#include "probe/facts/unit_file.h"
#include "probe/rules/subid_rules.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  using namespace taskcell::probe;
  std::string_view input = fuzz::TextOf(data, size);
  Unit unit;
  unit.settings = ParseUnitFile(input);
  for (const UnitSetting& each : unit.settings) fuzz::Require(!each.key.empty());
  Delegation delegation = DelegationOf(unit);
  fuzz::Require(delegation.on || !delegation.Holds("cpu"));

  SubidFacts subids;
  for (sys::FileSeen* seen :
       {&subids.subuid, &subids.subgid, &subids.passwd, &subids.group, &subids.login_defs}) {
    seen->state = sys::FileSeen::State::kPresent;
    seen->text = input;
  }
  Assessment assessment = AssessSubids(subids, "agent1", 1500);
  fuzz::Require(!assessment.state.empty() && assessment.reason.find('\x1b') == std::string::npos);
  fuzz::Require(assessment.fix.find('\x1b') == std::string::npos);

  (void)DockerListeners(input);  // only that they end
  (void)IsListening(input, "/run/docker.sock");
  Result<LiveFacts> live = ParseLiveFacts(input);
  if (live.ok()) {
    std::string json = ToJson(live.value());
    fuzz::Require(ToJson(ParseLiveFacts(json).value()) == json);
  }

  for (const char* path :
       {"/proc/self/mountinfo", "/proc/self/status", "/proc/cmdline", "/proc/net/unix",
        "/proc/net/tcp", "/proc/sys/kernel/core_pattern", "/etc/os-release", "/etc/passwd",
        "/etc/group", "/etc/subuid", "/etc/login.defs", "/etc/systemd/system/a.service"}) {
    std::string reduced = Reduce({Question::kRead, path}, input).value();
    fuzz::Require(Reduce({Question::kRead, path}, reduced) == reduced);
  }
  return 0;
}
