#include "probe/attack/payload.h"

#include <string.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

std::vector<Payload> Collect() {
  std::vector<Payload> all;
  for (std::span<const Payload> topic : AllTopics())
    all.insert(all.end(), topic.begin(), topic.end());
  return all;
}

}  // namespace

std::string NameOf(int32_t result) {
  switch (result) {
    case 0:
      return "got through";
    case kNoEffect:
      return "NO_EFFECT";
    case kCovered:
      return "COVERED";
    case kHeldBack:
      return "HELD_BACK";
    case kOtherUser:
      return "OTHER_USER";
    case kEndedAlong:
      return "ENDED_ALONG";
    default:
      break;
  }
  if (result > 0) {
    const char* name = ::strerrorname_np(result);
    return name != nullptr ? name : Text("errno ", result);
  }
  const char* name = ::sigabbrev_np(-result);
  return name != nullptr ? Text("SIG", name) : Text("signal ", -result);
}

std::string_view Name(Control control) {
  switch (control) {
    case Control::kUser:
      return "user";
    case Control::kGroup:
      return "group";
    case Control::kNamespace:
      return "namespace";
    case Control::kRoot:
      return "root";
  }
  return "";
}

std::optional<Control> ParseControl(std::string_view name) {
  for (Control control : {Control::kUser, Control::kGroup, Control::kNamespace, Control::kRoot}) {
    if (Name(control) == name) return control;
  }
  return std::nullopt;
}

std::span<const Payload> AllPayloads() {
  static const std::vector<Payload> kAll = Collect();
  return kAll;
}

const Payload* FindPayload(std::string_view name) {
  std::span<const Payload> all = AllPayloads();
  auto found = std::find_if(all.begin(), all.end(),
                            [name](const Payload& payload) { return payload.name == name; });
  return found == all.end() ? nullptr : &*found;
}

Targets TargetsOf(const Payload& payload, Targets targets) {
  if (payload.way == Way::kBeside) targets.cpu_millis = kBesideCpuMillis;
  return targets;
}

bool IsContained(const Payload& payload, int32_t result) {
  return result != 0 && std::find(payload.contained.begin(), payload.contained.end(), result) !=
                            payload.contained.end();
}

bool IsInChild(const Payload& payload) {
  return payload.way == Way::kInChild || payload.way == Way::kAlone ||
         payload.way == Way::kBeside || payload.way == Way::kQuota;
}

bool IsOfRoot(const Payload& payload) {
  return payload.way == Way::kRoot || payload.way == Way::kExchanged;
}

}  // namespace taskcell::attack
