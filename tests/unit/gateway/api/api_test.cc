// The API over a real socket, and the client that asks it.
#include "gateway/api/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "gateway/api/http_server.h"
#include "gateway/api/instance.h"
#include "gateway/cli/gateway_client.h"
#include "launcher/base/text.h"
#include "tests/support/fixture.h"
#include "tests/support/wait_for.h"
#include "tests/unit/gateway/api/scripted_service.h"

namespace taskcell::gateway {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class ApiTest : public ScriptedService {
 protected:
  void SetUp() override {
    ScriptedService::SetUp();
    (void)std::signal(SIGPIPE, SIG_IGN);
    Instance instance = ClaimHome(*home_).value();
    lock_ = std::move(instance.lock);
    scripts_ = Scripts::Make([this](const ScriptRequest& request,
                                    int cancel_fd) { return WorkOnScript(request, cancel_fd); },
                             [] { return uint64_t{1}; })
                   .value();
    api_ =
        std::make_unique<Api>(*service_, *scripts_, home_->path,
                              [this]() -> Result<std::vector<ListedAccount>> { return accounts_; });
    server_ =
        HttpServer::Start(
            std::move(instance.listener),
            [this](const ApiRequest& request) { return api_->Answer(request); }, idle_seconds_)
            .value();
    driver_ = std::thread([this] {
      while (!end_) {
        (void)service_->Dispatch(1);
        (void)sys::Poll(service_->wake_fd(), POLLIN, 5);
      }
    });
  }
  void TearDown() override {
    ReleaseAll();
    end_ = true;
    if (driver_.joinable()) driver_.join();
    service_->EndWatches();
    server_.reset();
    ScriptedService::TearDown();
  }

  // Sends bytes and returns all that is answered.
  std::string Raw(const std::string& request) const {
    UniqueFd socket = sys::ConnectUnix(home_->path + "/taskcell.sock", SOCK_STREAM).value();
    (void)sys::WriteAll(socket.get(), request);  // ignoring: what is refused is not read to its end
    std::string text;
    std::array<char, 4096> chunk;
    while (true) {
      EXPECT_NE(sys::Poll(socket.get(), POLLIN, 10000).value(), 0) << "no answer";
      Result<std::size_t> got = sys::Read(socket.get(), chunk);
      if (!got.ok() || got.value() == 0) return text;
      text.append(chunk.data(), got.value());
    }
  }
  struct Reply {
    int status;
    std::string body;
    Json json() const { return Json::parse(body); }
  };
  Reply Ask(const std::string& method, const std::string& target,
            const std::string& body = "") const {
    const std::string text = Raw(
        Text(method, " ", target, " HTTP/1.0\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
    return {std::stoi(text.substr(9, 3)), text.substr(text.find("\r\n\r\n") + 4)};
  }
  // A script that lasts until its code is released, its client is gone, or it is cancelled.
  ScriptAnswer WorkOnScript(const ScriptRequest& request, int cancel_fd) {
    Work({request.home, request.agent, request.code}, cancel_fd, [](std::string_view) {});
    ScriptAnswer answer;
    answer.out = Text(LanguageName(request.language), " ", request.input, " ", request.timeout_ms,
                      " ", request.agent);
    if (sys::Poll(cancel_fd, POLLIN, 0).value() != 0) answer.code = "stopped";
    ++scripts_ended_;
    return answer;
  }
  static std::string Script(const std::string& code) {
    return Json({{"language", "bash"}, {"code", code}}).dump();
  }
  bool Runs(const std::string& code) {
    const std::vector<std::string> started = Started();
    return std::find(started.begin(), started.end(), code) != started.end();
  }
  static std::string Task(const std::string& prompt) {
    return Json({{"agent", "a"}, {"kind", "bus"}, {"prompt", prompt}}).dump();
  }

  std::vector<ListedAccount> accounts_;
  unsigned idle_seconds_ = kApiIdleSeconds;
  UniqueFd lock_;
  std::unique_ptr<Scripts> scripts_;
  std::atomic<int> scripts_ended_ = 0;
  std::unique_ptr<Api> api_;
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> end_ = false;
  std::thread driver_;
};

TEST_F(ApiTest, ATaskGoesThroughItFromSubmissionToAnswer) {
  const Reply submitted = Ask("POST", "/v1/tasks", Task("one"));
  ASSERT_EQ(submitted.status, 202) << submitted.body;
  const std::string id = submitted.json()["id"];
  ReleaseAll();
  const Reply events = Ask("GET", Text("/v1/tasks/", id, "/events"));
  EXPECT_EQ(events.status, 200);
  EXPECT_THAT(events.body, HasSubstr("event: state\ndata: {\"state\":\"done\"}\n\n"));
  EXPECT_THAT(events.body, HasSubstr("event: answer\ndata: {\"outcome\":\"success\""));
  const Json shown = Ask("GET", "/v1/tasks/" + id).json();
  EXPECT_EQ(shown["state"], "done");
  EXPECT_EQ(shown["answer"]["reply"], "reply to one");
  EXPECT_EQ(Ask("GET", "/v1/tasks").json()[0]["id"], id);
  EXPECT_THAT(Ask("GET", Text("/v1/tasks/", id, "/log")).json()["log"].get<std::string>(),
              HasSubstr("begun"));
  EXPECT_EQ(Ask("GET", "/v1/accounts").body, "[]\n");
  EXPECT_EQ(Ask("GET", "/v1/status").json()["accepting"], true);
  EXPECT_EQ(Ask("POST", Text("/v1/tasks/", id, "/cancel")).json()["was"], "done");
}

// The line that begins so; "" where there is none.
std::string LineOf(const std::string& text, const std::string& begin) {
  for (std::string_view line : Split(text, '\n'))
    if (line.starts_with(begin)) return std::string(line.substr(begin.size()));
  return "";
}

TEST_F(ApiTest, MetricsTellWhatRunsAndRanAndWhatAccountsPaid) {
  accounts_.resize(3);
  accounts_[0].id = "work\"\n\\";
  accounts_[0].spent_microcents = 1'500'000;
  accounts_[0].budget_cents = 5000;
  accounts_[1].id = accounts_[0].id;
  accounts_[2].id = "free";
  const std::string id = Ask("POST", "/v1/tasks", Task("one")).json()["id"];
  ASSERT_TRUE(test::WaitFor([&] { return StateOf(id) == TaskState::kRunning; }));
  Ask("POST", "/v1/tasks", Task("two"));
  Reply reply = Ask("GET", "/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(LineOf(reply.body, "taskcell_tasks_running "), "1");
  EXPECT_EQ(LineOf(reply.body, "taskcell_tasks_waiting "), "1");
  EXPECT_EQ(LineOf(reply.body, "taskcell_tasks_total{"), "") << "none ended";
  const std::string label = R"({account="work\"\n\\"} )";
  EXPECT_EQ(LineOf(reply.body, "taskcell_account_spent_cents" + label), "1.500000");
  EXPECT_EQ(LineOf(reply.body, "taskcell_account_budget_cents" + label), "5000");
  const std::string series = "taskcell_account_spent_cents" + label;
  EXPECT_EQ(reply.body.find(series), reply.body.rfind(series)) << "one id, one series";
  EXPECT_EQ(LineOf(reply.body, "taskcell_account_budget_cents{account=\"free\"} "), "");
  ReleaseAll();
  ASSERT_TRUE(test::WaitFor([&] {
    return LineOf(Ask("GET", "/metrics").body,
                  R"(taskcell_tasks_total{state="done",code="ok"} )") == "2";
  }));
  reply = Ask("GET", "/metrics");
  EXPECT_EQ(LineOf(reply.body, "taskcell_task_duration_seconds_count "), "2");
  EXPECT_EQ(LineOf(reply.body, R"(taskcell_task_duration_seconds_bucket{le="+Inf"} )"), "2");
  EXPECT_EQ(Ask("POST", "/metrics").status, 405);
  // Every line is a comment or a series with a number.
  for (std::string_view line : Split(reply.body, '\n')) {
    if (line.empty() || line.starts_with("# ")) continue;
    EXPECT_TRUE(line.starts_with("taskcell_") && line.find_last_of("0123456789") == line.size() - 1)
        << line;
  }
}

TEST_F(ApiTest, AScriptIsAnsweredOnceItHasEnded) {
  Release("echo 1");
  const Reply reply =
      Ask("POST", "/v1/scripts",
          R"({"language":"python","code":"echo 1","stdin":"in","timeout_seconds":7,)"
          R"("agent":"a1"})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["stdout"], "python in 7000 a1");
  EXPECT_EQ(reply.json()["code"], "ok");
  EXPECT_EQ(Ask("POST", "/v1/scripts", Script("echo 1")).json()["stdout"], "bash  30000 default");
}

// Its client has nothing to say meanwhile.
class ShortIdleTest : public ApiTest {
 protected:
  void SetUp() override {
    idle_seconds_ = 1;
    ApiTest::SetUp();
  }
};

TEST_F(ShortIdleTest, AScriptMayTakeLongerThanAClientMayBeSilent) {
  std::thread release([this] {
    EXPECT_TRUE(test::WaitFor([this] { return Runs("slow"); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    Release("slow");
  });
  const Reply reply = Ask("POST", "/v1/scripts", Script("slow"));
  release.join();
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["code"], "ok");
}

TEST_F(ApiTest, AScriptEndsWithItsClient) {
  {
    UniqueFd client = sys::ConnectUnix(home_->path + "/taskcell.sock", SOCK_STREAM).value();
    const std::string body = Script("waits");
    ASSERT_TRUE(sys::WriteAll(client.get(), Text("POST /v1/scripts HTTP/1.1\r\nHost: x\r\n"
                                                 "Content-Length: ",
                                                 body.size(), "\r\n\r\n", body))
                    .ok());
    ASSERT_TRUE(test::WaitFor([this] { return Runs("waits"); }));
    EXPECT_EQ(scripts_ended_, 0);
  }
  EXPECT_TRUE(test::WaitFor([this] { return scripts_ended_ == 1; }));
}

TEST_F(ApiTest, OneScriptMoreThanMayRunIsTurnedAwayAndAllAreCancelledAtTheEnd) {
  std::thread first([this] {
    const Reply reply = Ask("POST", "/v1/scripts", Script("first"));
    EXPECT_EQ(reply.json()["code"], "stopped") << reply.body;
  });
  ASSERT_TRUE(test::WaitFor([this] { return Runs("first"); }));
  const Reply second = Ask("POST", "/v1/scripts", Script("second"));
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.json()["code"], "too_many_scripts");
  scripts_->Stop();
  EXPECT_EQ(Ask("POST", "/v1/scripts", Script("third")).json()["code"], "gateway_stopping");
  EXPECT_EQ(scripts_->Running(), 1U);
  scripts_->CancelAll();
  first.join();
  EXPECT_EQ(scripts_->Running(), 0U);
}

TEST_F(ApiTest, WhatIsWrongIsRefusedByNameAndNothingIsKept) {
  struct Row {
    const char* method;
    const char* target;
    std::string body;
    int status;
    const char* code;
  };
  for (const Row& row : {
           Row{"POST", "/v1/tasks", "{", 400, "bad_request"},
           Row{"POST", "/v1/tasks", "[]", 400, "bad_request"},
           Row{"POST", "/v1/scripts", "{", 400, "bad_request"},
           Row{"POST", "/v1/scripts", R"({"language":"bash"})", 400, "bad_request"},
           Row{"POST", "/v1/scripts", R"({"language":"bash","code":1})", 400, "bad_request"},
           Row{"POST", "/v1/scripts", R"({"language":"bash","code":"","x":""})", 400,
               "bad_request"},
           Row{"POST", "/v1/scripts", R"({"language":"bash","code":"","timeout_seconds":0})", 400,
               "bad_request"},
           Row{"POST", "/v1/scripts", R"({"language":"bash","code":"","timeout_seconds":301})", 400,
               "bad_request"},
           Row{"POST", "/v1/scripts", R"({"language":"perl","code":""})", 400,
               "unsupported_language"},
           Row{"GET", "/v1/scripts", "", 405, "method_not_allowed"},
           Row{"POST", "/v1/tasks", "{\"agent\":\"a\",\"kind\":\"bus\"}", 400, "bad_request"},
           Row{"POST", "/v1/tasks", "{\"agent\":1,\"kind\":\"bus\",\"prompt\":\"x\"}", 400,
               "bad_request"},
           Row{"POST", "/v1/tasks",
               "{\"agent\":\"a\",\"kind\":\"bus\",\"prompt\":\"x\",\"more\":\"\"}", 400,
               "bad_request"},
           Row{"POST", "/v1/tasks", "{\"agent\":\"a\",\"kind\":\"run\",\"prompt\":\"x\"}", 400,
               "unknown_kind"},
           Row{"POST", "/v1/tasks", R"({"agent":"a","kind":"bus","prompt":"x","role":"chief"})",
               400, "unknown_role"},
           Row{"POST", "/v1/tasks", R"({"agent":"a","kind":"bus","prompt":"x","role":1})", 400,
               "bad_request"},
           Row{"POST", "/v1/tasks",
               R"({"agent":"a","kind":"bus","prompt":"x","require_cell":"yes"})", 400,
               "bad_request"},
           Row{"POST", "/v1/tasks", R"({"agent":"sandboxed","kind":"mail","prompt":" "})", 400,
               "invalid_prompt"},
           Row{"POST", "/v1/tasks", Task(""), 400, "invalid_prompt"},
           Row{"PUT", "/v1/tasks", Task("x"), 405, "method_not_allowed"},
           Row{"GET", "/v1/tasks/none", "", 404, "task_not_found"},
           Row{"GET", "/v1/tasks/none/events", "", 404, "task_not_found"},
           Row{"GET", "/v1/tasks/none/log", "", 404, "task_not_found"},
           Row{"POST", "/v1/tasks/none/cancel", "", 404, "task_not_found"},
           Row{"GET", "/v1/tasks/none/cancel", "", 405, "method_not_allowed"},
           Row{"GET", "/v1/tasks/none/other", "", 404, "not_found"},
           Row{"GET", "/", "", 404, "not_found"},
       }) {
    const Reply reply = Ask(row.method, row.target, row.body);
    EXPECT_EQ(reply.status, row.status) << row.target << row.body << reply.body;
    EXPECT_EQ(reply.json()["code"], row.code) << row.target << row.body << reply.body;
  }
  EXPECT_EQ(Ask("GET", "/v1/tasks").body, "[]\n");
}

TEST_F(ApiTest, MailThatWakesNobodyIsAnsweredAndNotTakenIn) {
  const Reply reply =
      Ask("POST", "/v1/tasks", R"({"agent":"sandboxed","kind":"mail","prompt":"x"})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["answer"]["code"], "skipped");
  EXPECT_FALSE(reply.json().contains("id"));
  EXPECT_EQ(Ask("GET", "/v1/tasks").body, "[]\n");
  EXPECT_EQ(Ask("POST", "/v1/tasks", R"({"agent":"a","kind":"mail","prompt":"x"})").status, 202)
      << "of an agent whose sandbox is off it is a task like any other";
}

TEST_F(ApiTest, WhatElseIsAskedOfATaskReachesItsRun) {
  TaskRequest request{"", "a", "one"};
  request.kind = TaskKind::kGoalRound;
  request.team_role = "verifier";
  request.require_cell = true;
  ASSERT_TRUE(GatewayClient::Find(*home_).value()->Submit(request).ok());
  ASSERT_TRUE(test::WaitFor([this] { return Started().size() == 1; }));
  std::lock_guard lock(mutex_);
  EXPECT_EQ(requests_[0].kind, TaskKind::kGoalRound);
  EXPECT_EQ(requests_[0].team_role, "verifier");
  EXPECT_TRUE(requests_[0].require_cell);
}

TEST_F(ApiTest, ABodyIsTakenUpToItsBoundAndNotOnePast) {
  const std::string most(kMaxApiBodyBytes, ' ');
  EXPECT_EQ(Ask("POST", "/v1/tasks", most).json()["code"], "bad_request");
  const Reply declared = Ask("POST", "/v1/tasks", most + " ");
  EXPECT_EQ(declared.status, 413) << declared.body;
  EXPECT_EQ(declared.json()["code"], "too_large");
  // Without a declared length it is noticed as it comes.
  const std::string chunked =
      Raw(Text("POST /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: "
               "chunked\r\n\r\n800001\r\n",
               most, " \r\n0\r\n\r\n"));
  EXPECT_EQ(chunked.substr(9, 3), "413") << chunked.substr(0, 200);
}

TEST_F(ApiTest, AClientThatSendsTooMuchIsToldSo) {
  // Each of these takes six bytes in JSON.
  const std::string prompt(kMaxApiBodyBytes / 6 + 1, '\x01');
  EXPECT_EQ(GatewayClient::Find(*home_).value()->Submit({"", "a", prompt}).error().code,
            "too_large");
}

TEST_F(ApiTest, HeadersAreBounded) {
  const std::string long_one(kMaxApiHeaderBytes, 'x');
  const std::string answer = Raw(Text("GET /v1/status HTTP/1.0\r\nX: ", long_one, "\r\n\r\n"));
  EXPECT_THAT(answer.substr(0, 12),
              testing::AnyOf(HasSubstr("431"), HasSubstr("413"), HasSubstr("400")));
  const std::string half(kMaxApiHeaderBytes / 2, 'x');
  EXPECT_EQ(Raw(Text("GET /v1/status HTTP/1.0\r\nX: ", half, "\r\n\r\n")).substr(9, 3), "200");
}

TEST_F(ApiTest, AnotherUserIsRefusedEvenWhereTheSocketLetsItIn) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become another user");
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0711), 0);
  test::RunOptions other;
  other.user = test::User{"other", 54321, 54321, "/"};
  const std::vector<std::string> curl = {"curl",
                                         "-s",
                                         "-m",
                                         "5",
                                         "--unix-socket",
                                         directory_.At("taskcell.sock"),
                                         "http://x/v1/status"};
  EXPECT_NE(test::Run(curl, other).status, 0) << "mode 0600";
  ASSERT_EQ(::chmod(directory_.At("taskcell.sock").c_str(), 0666), 0);
  EXPECT_THAT(test::Run(curl, other).out, HasSubstr("\"code\":\"forbidden\""));
  EXPECT_THAT(test::Run(curl).out, HasSubstr("\"accepting\":true")) << "the control";
}

TEST_F(ApiTest, TheClientFollowsATaskAndCancelsIt) {
  std::optional<GatewayClient> client = GatewayClient::Find(*home_).value();
  ASSERT_TRUE(client.has_value());
  const std::string id = client->Submit({"", "a", "one"})->id;
  UniqueFd cancel = sys::MakeEvent().value();
  std::string lines;
  Result<TaskAnswer> answer = client->Follow(id, cancel.get(), [&](std::string_view line) {
    if (lines.empty()) (void)sys::SignalEvent(cancel.get());
    lines += line;
  });
  ASSERT_TRUE(answer.ok()) << answer.error().text;
  EXPECT_EQ(answer->code, "stopped");
  EXPECT_EQ(answer->task_id, id);
  EXPECT_THAT(lines, HasSubstr("begun"));
  TaskRequest mail{"", "sandboxed", "x", TaskKind::kMail};
  EXPECT_EQ(client->Submit(mail)->answer->code, "skipped");
  mail.team_role = "chief";
  EXPECT_EQ(client->Submit(mail).error().code, "unknown_role");
  EXPECT_EQ(client->Cancel("none").error().code, "task_not_found");
}

TEST_F(ApiTest, AClientWhoseGatewayGoesAwayIsToldSo) {
  std::optional<GatewayClient> client = GatewayClient::Find(*home_).value();
  const std::string id = client->Submit({"", "a", "one"})->id;
  Result<TaskAnswer> answer =
      client->Follow(id, -1, [this](std::string_view /*line*/) { service_->EndWatches(); });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, kGatewayLost);
  EXPECT_THAT(answer.error().text, HasSubstr(id));
}

}  // namespace
}  // namespace taskcell::gateway
