#include "gateway/task/evidence_text.h"

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

std::string EventsJson(const cgroup::Events& events) {
  JsonText json;
  json.Open('{').Key("oom_kills").Unsigned(events.oom_kills);
  json.Key("pids_refusals").Unsigned(events.pids_refusals);
  if (events.peak_memory_bytes.has_value())
    json.Key("peak_memory_bytes").Unsigned(*events.peak_memory_bytes);
  if (events.cpu_us.has_value()) json.Key("cpu_us").Unsigned(*events.cpu_us);
  json.Close('}');
  return json.text();
}

std::string EndText(const gate::JobEnd& end) {
  switch (end.outcome) {
    case gate::JobOutcome::kExited:
      return end.exit.signal != 0 ? Text("signal ", end.exit.signal) : Text("exit ", end.exit.code);
    case gate::JobOutcome::kRefused:
      return Text("refused at ", end.refusal.stage);
    case gate::JobOutcome::kGateClosed:
      return "the cell's PID 1 went away";
    case gate::JobOutcome::kOverdue:
      return "killed: it did not end when asked";
  }
  return "";
}

}  // namespace taskcell::gateway
