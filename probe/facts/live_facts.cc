#include "probe/facts/live_facts.h"

#include <algorithm>

#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"

namespace taskcell::probe {
namespace {

constexpr Outcome kOutcomes[] = {Outcome::kWorks, Outcome::kAbsent, Outcome::kForbidden,
                                 Outcome::kUnknown};
constexpr std::size_t kMaxItems = 1024;

Outcome OutcomeOf(std::string_view name) {
  for (Outcome each : kOutcomes) {
    if (Name(each) == name) return each;
  }
  return Outcome::kUnknown;
}

const std::vector<JsonValue>& Items(const JsonValue& object, std::string_view key) {
  static const std::vector<JsonValue> kNone;
  const JsonValue* found = object.Find(key);
  return found != nullptr && found->is_array() && found->items.size() <= kMaxItems ? found->items
                                                                                   : kNone;
}

int Errno(const JsonValue& object) {
  constexpr uint64_t kMaxErrno = 4095;
  return static_cast<int>(std::min(object.Unsigned("errno"), kMaxErrno));
}

}  // namespace

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kWorks:
      return "works";
    case Outcome::kAbsent:
      return "absent";
    case Outcome::kForbidden:
      return "forbidden";
    case Outcome::kUnknown:
      return "unknown";
  }
  return "";
}

const Trial* LiveFacts::Find(std::string_view feature) const {
  for (const Trial& trial : trials) {
    if (trial.feature == feature) return &trial;
  }
  return nullptr;
}

std::string ToJson(const LiveFacts& facts) {
  JsonText json;
  json.Open('{').Key("trials").Open('[');
  for (const Trial& trial : facts.trials) {
    json.Open('{').Key("feature").String(trial.feature).Key("outcome").String(Name(trial.outcome));
    json.Key("errno").Number(trial.err).Key("detail").String(trial.detail).Close('}');
  }
  json.Close(']').Key("sockets").Open('[');
  for (const SocketAccess& socket : facts.sockets)
    json.Open('{').Key("path").String(socket.path).Key("errno").Number(socket.err).Close('}');
  json.Close(']').Key("spaces").Open('[');
  for (const Space& space : facts.spaces) {
    json.Open('{').Key("path").String(space.path).Key("total_bytes").Unsigned(space.total_bytes);
    json.Key("free_bytes").Unsigned(space.free_bytes).Close('}');
  }
  json.Close(']');
  json.Key("engine_socket").String(facts.engine_socket);
  json.Key("engine_source").String(facts.engine_source);
  json.Key("engine_error").String(facts.engine_error);
  json.Key("runtime_directory").String(facts.runtime_directory);
  json.Key("unix_time_s").Number(facts.unix_time_s);
  json.Key("max_tasks").Unsigned(facts.max_tasks);
  json.Key("own_tasks").Unsigned(facts.own_tasks);
  json.Close('}');
  return json.text();
}

Result<LiveFacts> ParseLiveFacts(std::string_view text) {
  JsonValue json = TRY(ParseJson(text));
  if (!json.is_object()) return Error(Kind::kViolation, "the live facts are no JSON object");
  LiveFacts facts;
  for (const JsonValue& each : Items(json, "trials"))
    facts.trials.push_back({std::string(each.String("feature")), OutcomeOf(each.String("outcome")),
                            Errno(each), std::string(each.String("detail"))});
  for (const JsonValue& each : Items(json, "sockets"))
    facts.sockets.push_back({std::string(each.String("path")), Errno(each)});
  for (const JsonValue& each : Items(json, "spaces"))
    facts.spaces.push_back({std::string(each.String("path")), each.Unsigned("total_bytes"),
                            each.Unsigned("free_bytes")});
  facts.engine_socket = json.String("engine_socket");
  facts.engine_source = json.String("engine_source");
  facts.engine_error = json.String("engine_error");
  facts.runtime_directory = json.String("runtime_directory");
  facts.unix_time_s =
      static_cast<int64_t>(std::min(json.Unsigned("unix_time_s"), uint64_t{INT64_MAX}));
  facts.max_tasks = json.Unsigned("max_tasks");
  facts.own_tasks = json.Unsigned("own_tasks");
  return facts;
}

}  // namespace taskcell::probe
