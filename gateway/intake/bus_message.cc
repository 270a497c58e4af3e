#include "gateway/intake/bus_message.h"

#include <array>
#include <limits>
#include <map>

#include "gateway/config/agent_config.h"
#include "launcher/base/json_text.h"
#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

BusLine Broken(std::string trouble) {
  BusLine line;
  line.kind = BusLineKind::kBroken;
  line.trouble = std::move(trouble);
  return line;
}

// Reads the members of one message, noting the first that is wrong.
class MemberReader {
 public:
  explicit MemberReader(const JsonValue& object) : object_(object) {}

  void Needed(std::string_view key, std::string& value) {
    const JsonValue* member = object_.Find(key);
    if (member == nullptr || !member->is_string()) return Wrong(key, "missing, or no string");
    value = member->text;
  }
  void Optional(std::string_view key, std::string& value) {
    const JsonValue* member = object_.Find(key);
    if (member == nullptr || member->kind == JsonKind::kNull) return;
    if (!member->is_string()) return Wrong(key, "no string");
    value = member->text;
  }
  void Optional(std::string_view key, uint64_t& value) {
    const JsonValue* member = object_.Find(key);
    if (member == nullptr) return;
    const std::optional<uint64_t> number =
        member->kind == JsonKind::kNumber ? ParseUnsigned(member->text) : std::nullopt;
    if (!number.has_value() || *number > std::numeric_limits<uint8_t>::max())
      return Wrong(key, "no number from 0 to 255");
    value = *number;
  }

  const std::string& trouble() const { return trouble_; }

 private:
  void Wrong(std::string_view key, std::string_view what) {
    if (trouble_.empty()) trouble_ = Text("`", key, "` is ", what);
  }

  const JsonValue& object_;
  std::string trouble_;
};

void PutOptional(JsonText& json, std::string_view key, std::string_view value) {
  if (!value.empty()) json.Key(key).String(value);
}

}  // namespace

BusLine ParseBusLine(std::string_view text) {
  Result<JsonValue> value = ParseJson(text);
  if (!value.ok() || !value->is_object()) return Broken("it is no JSON object");
  const std::string_view type = value->String("type");
  BusLine line;
  if (type != "agent_message" && type != "agent_response") return line;
  const bool is_reply = type == "agent_response";
  line.kind = is_reply ? BusLineKind::kReply : BusLineKind::kMessage;
  MemberReader reader(value.value());
  reader.Needed("message_id", line.message.message_id);
  if (is_reply) return reader.trouble().empty() ? line : BusLine();
  reader.Needed("agent_id", line.message.agent_id);
  reader.Needed("payload", line.message.payload);
  reader.Optional("origin_agent", line.message.origin_agent);
  reader.Optional("sender_agent", line.message.sender_agent);
  reader.Optional("turn_id", line.message.turn_id);
  reader.Optional("session_id", line.message.session_id);
  reader.Optional("delegation_depth", line.message.delegation_depth);
  reader.Optional("hop_depth", line.message.hop_depth);
  if (!reader.trouble().empty()) return Broken(reader.trouble());
  if (line.message.message_id.empty() || line.message.message_id.size() > kMaxMessageIdBytes)
    return Broken(Text("`message_id` has not 1 to ", kMaxMessageIdBytes, " bytes"));
  line.message.sender = line.message.sender_agent;
  return line;
}

std::optional<std::string> ObjectionTo(const BusMessage& message) {
  if (message.agent_id.empty() || message.agent_id.size() > kMaxAgentNameBytes)
    return Text("it is for no agent: a name has 1 to ", kMaxAgentNameBytes, " bytes");
  if (message.payload.size() > kMaxPayloadBytes) return TooLarge(message.payload.size());
  if (message.delegation_depth < kMaxDelegationDepth) return std::nullopt;
  auto shown = [](std::string_view name) { return name.empty() ? "unknown" : Printable(name); };
  return Text("delegation depth limit (", kMaxDelegationDepth,
              ") exceeded: origin=", shown(message.origin_agent),
              ", sender=", shown(message.sender_agent), ", depth=", message.delegation_depth,
              "; the message was dropped so that agents do not call each other without end");
}

std::string TooLarge(uint64_t bytes) {
  return Text("the message has ", bytes, " bytes, and at most ", kMaxPayloadBytes,
              " are taken; send less, or a file's name");
}

TaskKind KindOf(const BusMessage& message) {
  constexpr std::array<std::pair<std::string_view, TaskKind>, 5> kSenders = {
      {{"dashboard", TaskKind::kDashboard},
       {"heartbeat", TaskKind::kHeartbeat},
       {"heartbeat-scheduler", TaskKind::kHeartbeat},
       {"goal-loop-driver", TaskKind::kGoalRound},
       {"autopilot", TaskKind::kAutopilotDelegate}}};
  if (IsEphemeral(message.agent_id)) return TaskKind::kEphemeral;
  if (message.message_id.starts_with("goal:")) return TaskKind::kGoalRound;
  for (const auto& [sender, kind] : kSenders)
    if (message.sender == sender) return kind;
  return TaskKind::kBus;
}

std::vector<std::vector<std::size_t>> Coalesce(const std::vector<BusMessage>& messages) {
  std::vector<std::vector<std::size_t>> tasks;
  std::vector<std::string_view> order;
  std::map<std::string_view, std::vector<std::vector<std::size_t>>> groups;
  for (std::size_t at = 0; at < messages.size(); ++at) {
    std::vector<std::vector<std::size_t>>& group = groups[messages[at].agent_id];
    if (group.empty()) order.push_back(messages[at].agent_id);
    if (group.empty() || group.back().size() == kMaxCoalesced) group.emplace_back();
    group.back().push_back(at);
  }
  for (std::string_view agent : order)
    for (std::vector<std::size_t>& task : groups[agent]) tasks.push_back(std::move(task));
  return tasks;
}

std::string PromptOf(const std::vector<std::string_view>& payloads) {
  if (payloads.size() == 1) return std::string(payloads.front());
  std::string prompt;
  std::size_t number = 0;
  for (std::string_view payload : payloads)
    prompt += Text(prompt.empty() ? "" : "\n\n---\n\n", "[Message ", ++number, "] ", payload);
  return prompt;
}

std::string EnvelopeOf(const BusMessage& message) {
  JsonText json;
  json.Open('{').Key("agent_id").String(message.agent_id);
  json.Key("delegation_depth").Unsigned(message.delegation_depth);
  json.Key("hop_depth").Unsigned(message.hop_depth);
  PutOptional(json, "origin_agent", message.origin_agent);
  PutOptional(json, "turn_id", message.turn_id);
  PutOptional(json, "session_id", message.session_id);
  return json.Close('}').text();
}

std::string ReplyLine(std::string_view envelope, std::string_view in_reply_to,
                      std::string_view reply_id, std::string_view text,
                      WallClock::time_point time) {
  Result<JsonValue> read = ParseJson(envelope);
  const JsonValue given = read.ok() ? std::move(read).value() : JsonValue();
  const std::string_view agent = given.String("agent_id");
  JsonText json;
  json.Open('{').Key("type").String("agent_response").Key("message_id").String(reply_id);
  json.Key("agent_id").String(agent).Key("payload").String(text);
  json.Key("timestamp").String(Rfc3339(time)).Key("in_reply_to").String(in_reply_to);
  json.Key("delegation_depth").Unsigned(given.Unsigned("delegation_depth"));
  json.Key("hop_depth").Unsigned(given.Unsigned("hop_depth"));
  PutOptional(json, "origin_agent", given.String("origin_agent"));
  json.Key("sender_agent").String(agent);
  PutOptional(json, "turn_id", given.String("turn_id"));
  PutOptional(json, "session_id", given.String("session_id"));
  return json.Close('}').text();
}

}  // namespace taskcell::gateway
