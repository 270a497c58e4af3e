#include "probe/live/unenforced.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/diagnosis.h"
#include "launcher/cgroup/remedy.h"

namespace taskcell::live {
namespace {

using cgroup::Controller;

// Swap is limited by the same controller as memory.
bool Sets(Controller controller, std::string_view limit) {
  return limit == Name(controller) || (limit == "swap" && controller == Controller::kMemory);
}

std::string Cause(Controller controller, const probe::EngineInfo& engine,
                  const cgroup::Situation& owner) {
  cgroup::Diagnosis diagnosis = cgroup::Diagnose(owner, controller);
  if (diagnosis.state == cgroup::LimitState::kNo)
    return Text(diagnosis.reason, ". What to do: ", diagnosis.fix);
  std::string_view driver = engine.cgroup_driver;
  if (engine.rootless && driver != "systemd") {
    return Text("the engine runs rootless with the cgroup driver '", driver,
                "', which limits nothing without root. What to do: start it below its user's "
                "service manager (systemctl --user start podman.socket, or docker), with the "
                "cgroup driver systemd");
  }
  return Text("this host lets uid ", owner.around.uid,
              " enforce it, so the engine did not do as asked. What to do: read the warnings below "
              "and the engine's log");
}

}  // namespace

std::optional<Error> WhyUnenforced(const std::vector<Row>& rows, const probe::EngineInfo& engine,
                                   const cgroup::Situation& owner) {
  std::vector<Controller> broken;
  std::vector<std::string> causes;
  for (Controller controller : cgroup::kControllers) {
    bool lost = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
      return row.verdict == Verdict::kNotHeld && Sets(controller, row.limit);
    });
    if (!lost) continue;
    broken.push_back(controller);
    std::string cause = Cause(controller, engine, owner);
    if (std::find(causes.begin(), causes.end(), cause) == causes.end())
      causes.push_back(std::move(cause));
  }
  if (broken.empty()) return std::nullopt;
  std::string text;
  for (const std::string& cause : causes) text += Text(text.empty() ? "" : "; ", cause);
  return cgroup::Unenforced(broken, Error(Kind::kUnsupported, std::move(text)));
}

}  // namespace taskcell::live
