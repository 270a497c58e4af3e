// taskcell-attacker [--control=PLACE --out=FD] [NAME=VALUE]... PAYLOAD...: runs in a cell, tries
// one payload after the other and prints one line of JSON for each. taskcell-probe starts it, and
// starts it outside of a cell, too, to show that the payload works there. Alone it does nothing.
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/output.h"
#include "launcher/sys/self.h"
#include "probe/attack/attacker/control.h"
#include "probe/attack/attacker/run.h"
#include "probe/attack/outcome.h"
#include "probe/attack/payloads/call.h"

namespace taskcell::attack {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(std::string_view text, int status) {
  sys::PrintMessage("taskcell-attacker", text);
  return status;
}

struct Orders {
  Targets targets;
  std::optional<Control> control;
  int out = STDOUT_FILENO;
  std::vector<const Payload*> payloads;
};

Status TakeWord(std::string_view word, Orders& orders) {
  constexpr std::string_view kControl = "--control=";
  constexpr std::string_view kOut = "--out=";
  if (word.starts_with(kControl)) {
    orders.control = ParseControl(word.substr(kControl.size()));
    if (orders.control) return Ok();
  } else if (word.starts_with(kOut)) {
    std::optional<uint64_t> fd = ParseUnsigned(word.substr(kOut.size()));
    if (fd && *fd < 64) {
      orders.out = static_cast<int>(*fd);
      return Ok();
    }
  } else if (word.find('=') != word.npos) {
    return ParseTarget(word, orders.targets);
  } else {
    std::size_t before = orders.payloads.size();
    for (const Payload& payload : AllPayloads())
      if (payload.name == word || payload.topic == word) orders.payloads.push_back(&payload);
    if (orders.payloads.size() > before) return Ok();
  }
  return Error(Kind::kUsage, Text("'", Printable(word), "' is no payload, no topic and no option"));
}

// Outside of a cell the payloads are harmless one by one, and only where a control is asked for.
Status CheckInCell() {
  Result<std::string> name = sys::HostName();
  if (name.ok() && name->starts_with("taskcell")) return Ok();
  return Error(Kind::kUsage,
               "this program attacks the cell it is in and runs in a cell only: run taskcell-probe "
               "attack");
}

int ReportPrivilege() {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {};
  bool read = Call(SYS_capget, &header, &data) == 0;
  bool capable = read && (data[0].permitted != 0 || data[1].permitted != 0);
  std::string text = Text("euid ", ::geteuid(), capable ? " capable" : " powerless");
  return sys::WriteAll(STDOUT_FILENO, text).ok() ? 0 : kFailed;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == kReportPrivilege) return ReportPrivilege();
  if (argc == 2 && std::string_view(argv[1]) == kBeVictim) {
    constexpr int kOut = 3;
    return Complain(BeVictim(kOut).error().text, kFailed);
  }
  Orders orders;
  for (int i = 1; i < argc; ++i) {
    Status taken = TakeWord(argv[i], orders);
    if (!taken.ok()) return Complain(taken.error().text, kUsage);
  }
  Status allowed = orders.control ? TakeControlsPlace(*orders.control) : CheckInCell();
  if (!allowed.ok() && !orders.control) return Complain(allowed.error().text, kUsage);
  for (const Payload* payload : orders.payloads) {
    bool told = false;
    if (allowed.ok()) {
      told = RunPayload(*payload, orders.targets, orders.out);
    } else {
      std::string line = OutcomeLine(payload->name, {allowed.error().err, allowed.error().text});
      told = sys::WriteAll(orders.out, line).ok();
    }
    if (!told) return kFailed;
  }
  return 0;
}

}  // namespace
}  // namespace taskcell::attack

int main(int argc, char** argv) { return taskcell::attack::Main(argc, argv); }
