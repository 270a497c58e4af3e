#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/task_kind.h"
#include "gateway/ledger/audit.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxPayloadBytes = 100'000;
inline constexpr uint64_t kMaxDelegationDepth = 5;  // a message that came so far is not passed on
inline constexpr std::size_t kMaxCoalesced = 5;
inline constexpr std::size_t kMaxMessageIdBytes = 256;

// A message from one of the home's queues to an agent. What is not given is empty or 0.
struct BusMessage {
  std::string message_id;
  std::string agent_id;  // whom it is for
  std::string payload;
  std::string sender;  // what sent it: an agent, "heartbeat", ...
  std::string origin_agent;
  std::string sender_agent;
  std::string turn_id;
  std::string session_id;
  uint64_t delegation_depth = 0;
  uint64_t hop_depth = 0;
};

enum class BusLineKind : uint8_t {
  kMessage,  // an agent_message
  kReply,    // an agent_response: of its message only the id is read
  kOther,    // for somebody else
  kBroken,   // `trouble` says why
};

// What a line of bus_queue.jsonl is to us.
struct BusLine {
  BusLineKind kind = BusLineKind::kOther;
  BusMessage message;
  std::string trouble;
};

// Reads one line, without its newline. Pure.
BusLine ParseBusLine(std::string_view line);

// Why no task is made of a message: for nobody, too large, or passed on too often; nullopt: one is.
// Pure.
std::optional<std::string> ObjectionTo(const BusMessage& message);
// The same of a payload that was not even read. Pure.
std::string TooLarge(uint64_t bytes);

// The kind of task a message asks for: for an agent of the registry always one that runs in a cell
// where its sandbox is on, since whoever may write to a queue must not be able to choose the host.
// What an ephemeral agent is sent is `ephemeral`, which the guide leaves on the host. Pure.
TaskKind KindOf(const BusMessage& message);

// Messages for the same agent, up to kMaxCoalesced, become one task; the agents are in the order
// of their first messages. Gives the indices of the messages of each task. Pure.
std::vector<std::vector<std::size_t>> Coalesce(const std::vector<BusMessage>& messages);

// The prompt of a task made of these payloads: one stands as it is, of several each gets its
// number. Pure.
std::string PromptOf(const std::vector<std::string_view>& payloads);

// What a reply needs of its message, as JSON, and the line that the reply is on the bus, without
// its newline. Pure.
std::string EnvelopeOf(const BusMessage& message);
std::string ReplyLine(std::string_view envelope, std::string_view in_reply_to,
                      std::string_view reply_id, std::string_view text, WallClock::time_point time);

}  // namespace taskcell::gateway
