#include "gateway/cli/gateway_client.h"

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "gateway/task/answer_json.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxAnswerBytes = 16U << 20U;  // of one answer, or of one event
constexpr std::size_t kMaxHeadBytes = 16U << 10U;
constexpr int kSilenceMs = 60000;  // a stream says something every ten seconds

Error Lost(std::string_view what) {
  return Error(Kind::kSystem, Text("the gateway ", what)).Coded(kGatewayLost);
}

// What the gateway refuses with, as a code that outlives its answer.
std::string_view KnownCode(std::string_view code) {
  for (std::string_view known :
       {"agent_not_found", "forbidden", "gateway_stopping", "invalid_prompt", "queue_full",
        "task_not_found", "too_large", "too_many_clients", "unknown_kind", "unknown_role",
        "workspace_failed"})
    if (code == known) return known;
  return "internal_error";
}

// HTTP/1.0: an answer ends with its connection, so that its body needs no further framing.
std::string RequestText(std::string_view method, const std::string& target, std::string_view body) {
  return Text(method, " ", target, " HTTP/1.0\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

struct Head {
  bool is_success = false;
  std::size_t size = 0;
};

// All that comes on a connection. One that breaks off ends it, too: a gateway that refuses a
// request does not read the rest of it.
Result<std::string> ReadAnswer(int connection) {
  std::string text;
  std::array<char, 16384> chunk;
  while (text.size() <= kMaxAnswerBytes) {
    if (TRY(sys::Poll(connection, POLLIN, kSilenceMs)) == 0) return Lost("does not answer");
    Result<std::size_t> got = sys::Read(connection, chunk);
    if (!got.ok() || got.value() == 0) return text;
    text.append(chunk.data(), got.value());
  }
  return Lost("says more than an answer may have");
}

// The head of an answer, once all of it is there.
Result<std::optional<Head>> ReadHead(std::string_view text) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t end = text.find(kEnd);
  if (end == text.npos) {
    if (text.size() > kMaxHeadBytes) return Lost("does not speak HTTP");
    return std::optional<Head>();
  }
  const std::vector<std::string_view> words = Words(text.substr(0, text.find('\r')));
  if (words.size() < 2 || !words[0].starts_with("HTTP/1.")) return Lost("does not speak HTTP");
  return std::optional<Head>(Head{words[1].starts_with('2'), end + kEnd.size()});
}

Error RefusalIn(std::string_view body) {
  try {
    const nlohmann::json object = nlohmann::json::parse(body);
    return Error(Kind::kSystem, object.at("message").get<std::string>())
        .Coded(KnownCode(object.at("code").get<std::string>()));
  } catch (const nlohmann::json::exception&) {
    return Lost("answered what is no answer of a gateway");
  }
}

Result<std::string> MemberOf(std::string_view body, const char* member) {
  try {
    return nlohmann::json::parse(body).at(member).get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return Lost("answered what is no answer of a gateway");
  }
}

// One of a stream's events.
struct Event {
  std::string_view name;
  std::string_view data;
};
Event ParseEvent(std::string_view text) {
  Event event;
  for (std::string_view line : Split(text, '\n')) {
    constexpr std::string_view kName = "event: ";
    constexpr std::string_view kData = "data: ";
    if (line.starts_with(kName)) event.name = line.substr(kName.size());
    if (line.starts_with(kData)) event.data = line.substr(kData.size());
  }
  return event;
}

}  // namespace

Result<UniqueFd> GatewayClient::Connect() const {
  return sys::ConnectUnix(Text("/proc/self/fd/", home_.get(), "/", kGatewaySocket), SOCK_STREAM);
}

Result<std::optional<GatewayClient>> GatewayClient::Find(const Home& home) {
  GatewayClient client(TRY(sys::Duplicate(home.fd.get())));
  Result<UniqueFd> connection = client.Connect();
  if (connection.ok()) return std::optional<GatewayClient>(std::move(client));
  if (connection.error().err == ENOENT || connection.error().err == ECONNREFUSED)
    return std::optional<GatewayClient>();
  return std::move(connection).error().With("the gateway of this home cannot be asked");
}

Result<GatewayClient> GatewayClient::Need(const Home& home) {
  std::optional<GatewayClient> client = TRY(Find(home));
  if (client.has_value()) return *std::move(client);
  return Error(Kind::kSystem,
               Text("no gateway serves this home; start one: taskcell-gateway --home ",
                    ShellWord(home.path)))
      .Coded(kGatewayLost);
}

Result<std::string> GatewayClient::Call(std::string_view method, const std::string& target,
                                        std::string_view body) {
  Result<UniqueFd> connection = Connect();
  if (!connection.ok()) return Lost("went away");
  // ignoring a failure: a gateway that takes no more of a request has answered it, or is gone
  (void)sys::WriteAll(connection->get(), RequestText(method, target, body));
  const std::string answer = TRY(ReadAnswer(connection->get()));
  const std::optional<Head> head = TRY(ReadHead(answer));
  if (!head.has_value()) return Lost("went away");
  const std::string_view rest = std::string_view(answer).substr(head->size);
  if (!head->is_success) return RefusalIn(rest);
  return std::string(rest);
}

Result<GatewayClient::Submitted> GatewayClient::Submit(const TaskRequest& request) {
  JsonText json;
  json.Open('{').Key("agent").String(request.agent).Key("kind").String(TaskKindName(request.kind));
  json.Key("prompt").String(request.prompt).Key("role").String(request.team_role);
  json.Key("require_cell").Bool(request.require_cell).Close('}');
  const std::string body = TRY(Call("POST", "/v1/tasks", json.text()));
  const nlohmann::json object = nlohmann::json::parse(body, nullptr, false);
  Submitted submitted;
  if (object.is_object() && object.contains("answer")) {
    submitted.answer = TRY(ParseAnswer(object["answer"].dump()));
  } else {
    submitted.id = TRY(MemberOf(body, "id"));
  }
  return submitted;
}

Result<std::string> GatewayClient::Cancel(const std::string& id) {
  return MemberOf(TRY(Call("POST", Text("/v1/tasks/", id, "/cancel"))), "was");
}

Result<std::string> GatewayClient::Log(const std::string& id) {
  return MemberOf(TRY(Call("GET", Text("/v1/tasks/", id, "/log"))), "log");
}

Result<TaskAnswer> GatewayClient::Follow(const std::string& id, int cancel_fd,
                                         const std::function<void(std::string_view)>& on_line) {
  const Error gone = Lost(Text("went away before task ", id, " ended; taskcell show ", id,
                               " tells what became of it once a gateway is back"));
  Result<UniqueFd> connection = Connect();
  if (!connection.ok()) return gone;
  TRY(sys::WriteAll(connection->get(), RequestText("GET", Text("/v1/tasks/", id, "/events"), "")));
  std::string text;
  std::optional<Head> head;
  bool cancelled = false;
  std::array<char, 16384> chunk;
  while (true) {
    std::array<struct pollfd, 2> entries = {
        {{connection->get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
    if (TRY(sys::PollAll(entries, kSilenceMs)) == 0) return gone;
    if (entries[1].revents != 0) {
      (void)sys::Read(cancel_fd, std::span(chunk).first(16));  // ignoring: a further one is seen
      if (cancelled)
        return Lost(Text("is not waited for any longer; it was asked to cancel task ", id));
      cancelled = true;
      TRY(Cancel(id));
    }
    if (entries[0].revents == 0) continue;
    Result<std::size_t> got = sys::Read(connection->get(), chunk);
    if (!got.ok() || got.value() == 0) {
      if (head.has_value() && !head->is_success) return RefusalIn(text);
      return gone;
    }
    text.append(chunk.data(), got.value());
    if (!head.has_value()) {
      head = TRY(ReadHead(text));
      if (!head.has_value()) continue;
      text.erase(0, head->size);
    }
    if (!head->is_success) continue;
    if (text.size() > kMaxAnswerBytes) return Lost("says more than an answer may have");
    constexpr std::string_view kEnd = "\n\n";
    for (std::size_t end = text.find(kEnd); end != text.npos; end = text.find(kEnd)) {
      const Event event = ParseEvent(std::string_view(text).substr(0, end));
      if (event.name == "answer") return ParseAnswer(event.data);
      if (event.name == "error") return RefusalIn(event.data);
      if (event.name == "log") on_line(TRY(MemberOf(event.data, "line")));
      text.erase(0, end + kEnd.size());
    }
  }
}

}  // namespace taskcell::gateway
