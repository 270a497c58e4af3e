#include "gateway/api/api.h"

#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "gateway/ledger/task_json.h"
#include "gateway/task/answer_json.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr int64_t kNewest = 20;
constexpr std::string_view kTasks = "/v1/tasks";
// A stream says something at least this often, so that a reader that is gone is noticed.
constexpr std::chrono::seconds kHeartbeat{10};

constexpr unsigned kBadRequest = 400;
constexpr unsigned kNotFound = 404;
constexpr unsigned kMethodNotAllowed = 405;
constexpr unsigned kTooMany = 429;
constexpr unsigned kInternal = 500;
constexpr unsigned kUnavailable = 503;

unsigned StatusOf(const Error& error) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 4> kStatus = {
      {{"queue_full", kTooMany},
       {"too_many_scripts", kTooMany},
       {"gateway_stopping", kUnavailable},
       {"task_not_found", kNotFound}}};
  for (const auto& [code, status] : kStatus)
    if (error.code == code) return status;
  const bool is_request =
      error.kind == Kind::kUsage || error.kind == Kind::kUnsupported || !error.code.empty();
  return is_request && error.code != "workspace_failed" ? kBadRequest : kInternal;
}

ApiAnswer RefusalFor(const Error& error) {
  return Refusal(StatusOf(error), error.code.empty() ? "internal_error" : error.code, error.text);
}

ApiAnswer NoTask(const std::string& id) {
  return Refusal(kNotFound, "task_not_found", Text("there is no task ", Printable(id)));
}

Result<Submission> ParseSubmission(const std::string& body) {
  auto bad = [](std::string text) {
    return Error(Kind::kUsage, std::move(text)).Coded("bad_request");
  };
  try {
    const nlohmann::json object = nlohmann::json::parse(body);
    if (!object.is_object()) return bad("the body must be a JSON object");
    for (const auto& [key, value] : object.items()) {
      if (key == "require_cell") {
        if (!value.is_boolean()) return bad("`require_cell` must be true or false");
        continue;
      }
      if (key != "agent" && key != "kind" && key != "prompt" && key != "role")
        return bad(
            Text("unknown member `", Printable(key), "`: agent, kind, prompt, role, require_cell"));
      if (!value.is_string()) return bad(Text("`", key, "` must be a string"));
    }
    for (const char* key : {"agent", "kind", "prompt"})
      if (!object.contains(key)) return bad(Text("`", key, "` is missing"));
    Submission submission;
    submission.kind = TRY(ParseTaskKind(object["kind"].get<std::string>()));
    submission.agent = object["agent"];
    submission.prompt = object["prompt"];
    submission.team_role = object.value("role", "");
    submission.require_cell = object.value("require_cell", false);
    return submission;
  } catch (const nlohmann::json::exception& error) {
    return bad(Text("the body is not JSON: ", error.what()));
  }
}

Result<ScriptRequest> ParseScript(const std::string& body, const std::string& home) {
  auto bad = [](std::string text) {
    return Error(Kind::kUsage, std::move(text)).Coded("bad_request");
  };
  constexpr uint64_t kMillis = 1000;
  ScriptRequest request;
  request.home = home;
  request.agent = "default";
  try {
    const nlohmann::json object = nlohmann::json::parse(body);
    if (!object.is_object()) return bad("the body must be a JSON object");
    for (const auto& [key, value] : object.items()) {
      const bool is_number = key == "timeout_seconds";
      if (!is_number && key != "language" && key != "code" && key != "stdin" && key != "agent")
        return bad(Text("unknown member `", Printable(key),
                        "`: language, code, stdin, timeout_seconds, agent"));
      if (is_number ? !value.is_number_unsigned() : !value.is_string())
        return bad(Text("`", key, "` must be a ", is_number ? "positive number" : "string"));
    }
    for (const char* key : {"language", "code"})
      if (!object.contains(key)) return bad(Text("`", key, "` is missing"));
    request.language = TRY(ParseLanguage(object["language"].get<std::string>()));
    request.code = object["code"];
    request.input = object.value("stdin", "");
    request.agent = object.value("agent", request.agent);
    const uint64_t seconds = object.value("timeout_seconds", kDefaultScriptSeconds);
    if (seconds == 0 || seconds > kMaxScriptSeconds)
      return bad(Text("`timeout_seconds` must be 1 to ", kMaxScriptSeconds));
    request.timeout_ms = seconds * kMillis;
    return request;
  } catch (const nlohmann::json::exception& error) {
    return bad(Text("the body is not JSON: ", error.what()));
  }
}

std::string Event(std::string_view name, std::string_view json) {
  return Text("event: ", name, "\ndata: ", json, "\n\n");
}

// What a watch tells, as events: the state where it changed, new lines of the log, the answer.
class EventStream {
 public:
  explicit EventStream(std::unique_ptr<TaskWatch> watch) : watch_(std::move(watch)) {}

  std::optional<std::string> Next() {
    if (is_over_) return std::nullopt;
    Result<TaskWatch::News> news = watch_->Next(kHeartbeat);
    if (!news.ok()) {
      is_over_ = true;
      return Event("error", RefusalFor(news.error()).body);
    }
    is_over_ = news->is_over;
    std::string events;
    if (state_ != news->state) {
      state_ = news->state;
      JsonText json;
      json.Open('{').Key("state").String(TaskStateName(news->state)).Close('}');
      events += Event("state", json.text());
    }
    for (std::string_view line : Split(news->lines, '\n')) {
      if (line.empty()) continue;
      JsonText json;
      json.Open('{').Key("line").String(line).Close('}');
      events += Event("log", json.text());
    }
    if (!news->answer.empty()) events += Event("answer", news->answer);
    if (events.empty()) events = ": nothing new\n\n";
    return events;
  }

 private:
  std::unique_ptr<TaskWatch> watch_;
  std::optional<TaskState> state_;
  bool is_over_ = false;
};

}  // namespace

ApiAnswer Api::Answer(const ApiRequest& request) {
  const std::string_view path = request.path;
  const bool is_get = request.method == "GET";
  const bool is_post = request.method == "POST";
  const ApiAnswer wrong_method =
      Refusal(kMethodNotAllowed, "method_not_allowed", Text("not ", Printable(request.method)));
  if (path == "/v1/status") return is_get ? Status() : wrong_method;
  if (path == "/v1/accounts") return is_get ? ListAccounts() : wrong_method;
  if (path == "/v1/scripts") return is_post ? Script(request) : wrong_method;
  if (path == "/metrics") return is_get ? Measure() : wrong_method;
  if (path == kTasks) {
    if (is_post) return Submit(request);
    return is_get ? List(request) : wrong_method;
  }
  if (path.starts_with(Text(kTasks, "/"))) {
    const std::string_view below = path.substr(kTasks.size() + 1);
    const std::size_t slash = below.find('/');
    const std::string id(below.substr(0, slash));
    const std::string_view rest = slash == below.npos ? "" : below.substr(slash);
    if (rest == "/cancel") return is_post ? Cancel(id) : wrong_method;
    if (rest.empty() || rest == "/log" || rest == "/events")
      return is_get ? OfTask(request, id, rest) : wrong_method;
  }
  return Refusal(kNotFound, "not_found", Text("there is no ", Printable(path)));
}

ApiAnswer Api::OfTask(const ApiRequest& /*request*/, const std::string& id, std::string_view rest) {
  if (rest == "/log") return Log(id);
  if (rest == "/events") return Events(id);
  return Show(id);
}

ApiAnswer Api::Status() {
  Result<Service::Load> load = service_.Measure();
  if (!load.ok()) return RefusalFor(load.error());
  JsonText json;
  json.Open('{').Key("version").String(TASKCELL_VERSION);
  json.Key("running").Unsigned(load->running).Key("waiting").Number(load->waiting);
  json.Key("accepting").Bool(load->accepting).Close('}');
  return {200, json.text(), {}};
}

ApiAnswer Api::List(const ApiRequest& request) {
  const bool all = request.query.find("all") != request.query.end();
  Result<std::vector<TaskRow>> tasks =
      service_.Tasks(all ? std::numeric_limits<int64_t>::max() : kNewest);
  if (!tasks.ok()) return RefusalFor(tasks.error());
  JsonText json;
  json.Open('[');
  for (const TaskRow& task : tasks.value()) {
    json.Open('{');
    PutTask(json, task);
    json.Close('}');
  }
  json.Close(']');
  return {200, json.text(), {}};
}

ApiAnswer Api::Submit(const ApiRequest& request) {
  Result<Submission> submission = ParseSubmission(request.body);
  if (!submission.ok()) return RefusalFor(submission.error());
  Result<std::optional<TaskAnswer>> skipped = service_.Skip(submission.value());
  if (!skipped.ok()) return RefusalFor(skipped.error());
  if (skipped->has_value()) {
    JsonText json;
    json.Open('{').Key("answer").Raw(AnswerJson(*skipped.value())).Close('}');
    return {200, json.text(), {}};
  }
  Result<std::string> id = service_.Submit(submission.value());
  if (!id.ok()) return RefusalFor(id.error());
  JsonText json;
  json.Open('{').Key("id").String(id.value()).Close('}');
  constexpr unsigned kAccepted = 202;
  return {kAccepted, json.text(), {}};
}

ApiAnswer Api::Show(const std::string& id) {
  Result<std::optional<TaskView>> found = service_.Find(id);
  if (!found.ok()) return RefusalFor(found.error());
  if (!found.value().has_value()) return NoTask(id);
  const TaskView& view = *found.value();
  JsonText json;
  json.Open('{');
  PutTask(json, view.row);
  PutRuns(json, view.runs);
  json.Key("answer");
  if (view.answer.empty()) {
    json.Null();
  } else {
    json.Raw(view.answer);
  }
  json.Close('}');
  return {200, json.text(), {}};
}

ApiAnswer Api::Log(const std::string& id) {
  Result<std::optional<TaskView>> found = service_.Find(id);
  if (!found.ok()) return RefusalFor(found.error());
  if (!found.value().has_value()) return NoTask(id);
  Result<std::string> log = service_.Log(id);
  if (!log.ok()) return RefusalFor(log.error());
  JsonText json;
  json.Open('{').Key("log").String(log.value()).Close('}');
  return {200, json.text(), {}};
}

ApiAnswer Api::Events(const std::string& id) {
  Result<std::optional<TaskView>> found = service_.Find(id);
  if (!found.ok()) return RefusalFor(found.error());
  if (!found.value().has_value()) return NoTask(id);
  auto stream = std::make_shared<EventStream>(service_.Watch(id));
  return {200, "", [stream] { return stream->Next(); }};
}

ApiAnswer Api::Cancel(const std::string& id) {
  Result<std::optional<TaskState>> was = service_.Cancel(id);
  if (!was.ok()) return RefusalFor(was.error());
  if (!was.value().has_value()) return NoTask(id);
  JsonText json;
  json.Open('{').Key("was").String(TaskStateName(*was.value())).Close('}');
  return {200, json.text(), {}};
}

ApiAnswer Api::Script(const ApiRequest& request) {
  Result<ScriptRequest> script = ParseScript(request.body, home_);
  if (!script.ok()) return RefusalFor(script.error());
  Result<ScriptAnswer> answer = scripts_.Run(script.value(), request.client_fd);
  if (!answer.ok()) return RefusalFor(answer.error());
  if (answer->code == "invalid_script") return Refusal(kBadRequest, answer->code, answer->message);
  return {200, ScriptAnswerJson(answer.value()), {}};
}

ApiAnswer Api::ListAccounts() {
  Result<std::vector<ListedAccount>> accounts = accounts_();
  if (!accounts.ok()) return RefusalFor(accounts.error());
  return {200, AccountsJson(accounts.value()), {}};
}

ApiAnswer Api::Measure() {
  Result<Service::Load> load = service_.Measure();
  if (!load.ok()) return RefusalFor(load.error());
  Metrics::Now now;
  now.running = load->running;
  now.waiting = load->waiting;
  // A configuration that cannot be read keeps nobody from the rest.
  if (Result<std::vector<ListedAccount>> accounts = accounts_(); accounts.ok())
    now.accounts = std::move(accounts).value();
  return {200, service_.metrics().Text(now), {}, "text/plain; version=0.0.4"};
}

}  // namespace taskcell::gateway
