#include <dirent.h>

#include <fstream>
#include <thread>
#include <utility>

#include "tests/integration/gateway/egress/broker_fixture.h"
#include "tests/support/wait_for.h"

namespace taskcell::gateway {
namespace {

// What a hostile or broken provider answers.
class HostileProviderTest : public BrokerTest {
 protected:
  // A cell whose provider misbehaves as `mode` says.
  Cell AttachMode(const std::string& mode) {
    return Attach(MakeRoute(WireApi::kOpenAiChat, "/mode/" + mode));
  }
  // The same with a provider that has so long for each piece of an answer.
  Cell AttachHanging(const std::string& mode, int idle_seconds) {
    Route route = MakeRoute(WireApi::kOpenAiChat, "/mode/" + mode);
    route.limits.upstream_idle_seconds = idle_seconds;
    return Attach(std::move(route));
  }
  // A request that the provider of `cell` has and never answers.
  void SendAndAwait(HttpClient& client, const Cell& cell) {
    const std::size_t before = NewLog().size();
    ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
    ASSERT_TRUE(test::WaitFor([&] { return NewLog().size() > before; }));
  }
  // The one request of `cell` is noted, and comes to have `code`.
  static bool HasEndedWith(const Cell& cell, std::string_view code) {
    return test::WaitFor([&] {
      const EgressRecord record = cell.handle->Record();
      return record.requests.size() == 1 && record.requests[0].code == code;
    });
  }
};

int OpenDescriptors() {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

long ResidentKiB() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

TEST_F(HostileProviderTest, EveryBadAnswerHasItsStatusAndCode) {
  struct Row {
    const char* mode;
    int status;
    const char* code;  // of the record; "": relayed as it was
    bool is_whole;
  } rows[] = {
      {"401", 401, "", true},
      {"402", 402, "", true},
      {"403", 403, "", true},
      {"429", 429, "", true},
      {"500", 500, "", true},
      {"529", 529, "", true},
      {"redirect", 502, "egress_redirect", true},
      {"gzip-bomb", 502, "egress_encoding", true},
      {"header-flood", 502, "egress_upstream_head", true},
      {"garbage", 502, "egress_unreachable", true},
      {"switch-protocols", 502, "egress_cut", true},
      {"continue-storm", 502, "egress_upstream_head", true},
      {"early-hints", 200, "", true},
      {"half", 200, "egress_cut", false},
      {"half-stream", 200, "egress_cut", false},
      {"huge", 200, "egress_bytes", false},
      {"garbage-json", 200, "", true},
      {"both-framings", 200, "", true},
  };
  for (const Row& row : rows) {
    Cell cell = AttachMode(row.mode);
    HttpAnswer answer = Chat(cell.port);
    EXPECT_EQ(answer.status, row.status) << row.mode << answer.body.substr(0, 200);
    EXPECT_EQ(answer.is_whole, row.is_whole) << row.mode;
    EgressRecord record = cell.handle->Detach();
    ASSERT_EQ(record.requests.size(), 1U) << row.mode;
    EXPECT_EQ(record.requests[0].code, row.code) << row.mode;
    bool is_bound = std::string_view(row.code) == "egress_bytes";  // the cell's, not the provider's
    EXPECT_EQ(record.totals.refused, is_bound ? 1U : 0U) << row.mode;
    bool is_failure = *row.code != 0 && !is_bound;
    EXPECT_EQ(record.totals.upstream_failures, is_failure ? 1U : 0U) << row.mode;
    bool sums_up = record.totals.bytes_down <= kEgressBytesDown;
    EXPECT_TRUE(sums_up) << row.mode << record.totals.bytes_down;
  }
  Cell silent = AttachHanging("hang", 1);
  EXPECT_EQ(Chat(silent.port).status, 504);
  EXPECT_EQ(silent.handle->Detach().requests.at(0).code, "egress_timeout");
  // How long a busy machine's provider takes for a head is not known: longer, until one came.
  HttpAnswer begun;
  for (int idle_seconds = 1; begun.status != 200 && idle_seconds < 60; idle_seconds *= 2) {
    Cell cell = AttachHanging("hang-in-body", idle_seconds);
    begun = Chat(cell.port);
    EXPECT_FALSE(begun.status == 200 && begun.is_whole);
    EgressRecord record = cell.handle->Detach();
    ASSERT_EQ(record.requests.size(), 1U);
    EXPECT_EQ(record.requests[0].code, "egress_timeout");
    EXPECT_EQ(record.totals.upstream_failures, 1U);
  }
  EXPECT_EQ(begun.status, 200);
  // Nothing is left of all that: a good provider is reached.
  Cell cell = AttachChat();
  EXPECT_EQ(Chat(cell.port).status, 200);
}

TEST_F(HostileProviderTest, ASwitchOfProtocolsAfterAGoodAnswerIsRefusedToo) {
  Cell cell = AttachMode("switch-second");
  HttpClient client(cell.port);
  for (int status : {200, 502}) {
    ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body.find("bytes of no answer"), std::string::npos);
  }
  EXPECT_EQ(cell.handle->Detach().requests.at(1).code, "egress_cut");
}

TEST_F(HostileProviderTest, NothingOfAnInterimAnswerIsPassedOn) {
  Cell cell = AttachMode("early-hints");
  const HttpAnswer answer = Chat(cell.port);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.head.find("interim"), std::string::npos) << answer.head;
}

TEST_F(HostileProviderTest, TheEvidenceNamesWhatTheAccountDid) {
  auto totals = [this](const char* mode) {
    const bool hangs = std::string_view(mode) == "hang";
    Cell cell = hangs ? AttachHanging(mode, 1) : AttachMode(mode);
    EXPECT_EQ(Chat(cell.port).status == 504, hangs) << mode;
    return cell.handle->Detach().totals;
  };
  EXPECT_EQ(totals("401").auth_failures, 1U);
  EXPECT_EQ(totals("403").auth_failures, 1U);
  EXPECT_EQ(totals("402").billing, 1U);
  EXPECT_EQ(totals("402").rate_limited, 0U);
  EXPECT_EQ(totals("429").rate_limited, 1U);
  EXPECT_EQ(totals("429").retry_after_seconds, 30);
  EXPECT_EQ(totals("500").provider_errors, 1U);
  EXPECT_EQ(totals("529").last_upstream_status, 529);
  const EgressTotals hung = totals("hang");
  EXPECT_EQ(hung.upstream_failures, 1U);
  EXPECT_EQ(hung.model_calls, 0U);
}

TEST_F(HostileProviderTest, NobodyThere) {
  Route route = MakeRoute(WireApi::kOpenAiChat);
  route.upstream.port = 1;
  Cell cell = Attach(std::move(route));
  HttpAnswer answer = Chat(cell.port);
  EXPECT_EQ(answer.status, 502);
  EXPECT_NE(answer.body.find("egress_unreachable"), std::string::npos) << answer.body;
}

TEST_F(HostileProviderTest, ARedirectIsNeitherFollowedNorPassedOn) {
  Cell cell = AttachMode("redirect");
  HttpAnswer answer = Chat(cell.port);
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(answer.head.find("location"), std::string::npos);
  EXPECT_EQ(NewLog().size(), 1U);
}

TEST_F(HostileProviderTest, AnEchoedCredentialDoesNotReachTheCell) {
  Cell in_header = AttachMode("echo-header");
  HttpAnswer header = Chat(in_header.port);
  EXPECT_EQ(header.status, 200);
  EXPECT_NE(header.head.find("x-request-id: redacted"), std::string::npos) << header.head;
  EXPECT_EQ(header.head.find(kRealKey), std::string::npos);
  EXPECT_TRUE(in_header.handle->Detach().totals.credential_echoed);

  Cell in_body = AttachMode("echo-body");
  HttpAnswer body = Chat(in_body.port);
  EXPECT_EQ(body.status, 200);
  EXPECT_FALSE(body.is_whole);
  EXPECT_EQ(body.body, "data: before ");
  EgressRecord record = in_body.handle->Detach();
  EXPECT_TRUE(record.totals.credential_echoed);
  EXPECT_EQ(record.requests[0].code, "egress_credential_echo");
  EXPECT_EQ(RecordJson(record).find(kRealKey), std::string::npos);

  Cell control = AttachMode("garbage-json");
  (void)Chat(control.port);
  EXPECT_FALSE(control.handle->Detach().totals.credential_echoed);
}

TEST_F(HostileProviderTest, EventsAreNotHeldBack) {
  Cell cell = AttachMode("slow");
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
  ExpectEachEventOnItsOwn(client, ReleaseProvider);
}

TEST_F(HostileProviderTest, TheHeadLeavesBeforeTheFirstEvent) {
  Cell cell = AttachMode("late");
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
  ASSERT_TRUE(client.ReadUntil("\r\n\r\n"));
  ReleaseProvider();
  HttpAnswer answer = client.Read();
  EXPECT_TRUE(answer.is_whole);
  EXPECT_NE(answer.body.find("ping"), std::string::npos);
}

TEST_F(HostileProviderTest, ASlowReaderStopsTheProviderNotTheMemory) {
  Cell cell = AttachMode("large");
  HttpClient client(cell.port);
  const long before = ResidentKiB();
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
  // Until nothing more is taken from the provider.
  uint64_t taken = 0;
  auto stands_still = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const uint64_t before_that = std::exchange(taken, cell.handle->Totals().bytes_down);
    return taken > 0 && taken == before_that;
  };
  ASSERT_TRUE(test::WaitFor(stands_still));
  EXPECT_LT(taken, 16U << 20);
  EXPECT_LT(ResidentKiB() - before, 8192);
  HttpAnswer answer = client.Read();
  EXPECT_TRUE(answer.is_whole);
  EXPECT_EQ(answer.body.size(), 32U << 20);
}

TEST_F(HostileProviderTest, AReaderThatNeverReadsIsCut) {
  Route route = MakeRoute(WireApi::kOpenAiChat, "/mode/large");
  route.limits.client_stall_seconds = 1;
  Cell cell = Attach(std::move(route));
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
  ASSERT_TRUE(HasEndedWith(cell, "egress_client_gone"));
}

TEST_F(HostileProviderTest, AClientThatGoesAwayEndsItsTransfer) {
  Cell cell = AttachMode("hang");
  {
    HttpClient client(cell.port);
    SendAndAwait(client, cell);
    // The provider has it: what was decided of it is noted already.
    const EgressRecord record = cell.handle->Record();
    ASSERT_EQ(record.requests.size(), 1U);
    EXPECT_EQ(record.requests[0].path, "/v1/chat/completions");
    EXPECT_EQ(record.requests[0].model, "test-model");
    EXPECT_EQ(record.requests[0].status, 0);
    EXPECT_EQ(record.requests[0].code, "");
  }
  ASSERT_TRUE(HasEndedWith(cell, "egress_client_gone"));
  EXPECT_TRUE(cell.handle->Record().requests.at(0).relayed) << "it may be billed all the same";
}

// As codex does at the last event.
TEST_F(HostileProviderTest, AClientThatHangsUpAtAnAnswersEndHasHadItWhole) {
  Cell cell = AttachMode("open-end");
  {
    HttpClient client(cell.port);
    ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
    ASSERT_TRUE(client.ReadUntil("\"stop\""));
  }
  ASSERT_TRUE(test::WaitFor([&] { return !cell.handle->Record().requests.at(0).finish.empty(); }));
  const EgressRequest request = cell.handle->Record().requests.at(0);
  EXPECT_EQ(request.code, "");
  EXPECT_EQ(request.finish, "stop");
  EXPECT_EQ(request.upstream_status, 200);
}

TEST_F(HostileProviderTest, DetachingLeavesNothingBehind) {
  int before = OpenDescriptors();
  {
    Cell cell = AttachMode("hang");
    HttpClient client(cell.port);
    HttpClient idle(cell.port);
    SendAndAwait(client, cell);
    EgressRecord record = cell.handle->Detach();
    ASSERT_EQ(record.requests.size(), 1U);
    EXPECT_EQ(record.requests[0].code, "egress_detached");
    EXPECT_TRUE(client.IsClosed());
    EXPECT_TRUE(idle.IsClosed());
    EXPECT_FALSE(HttpClient(cell.port).IsConnected());
    EXPECT_EQ(cell.handle->Detach().requests.size(), 1U);  // again: the same record
  }
  broker_.reset();
  EXPECT_LE(OpenDescriptors(), before);
}

TEST_F(HostileProviderTest, TheBrokerCanEndBeforeItsCells) {
  Cell cell = AttachMode("hang");
  HttpClient client(cell.port);
  SendAndAwait(client, cell);
  broker_.reset();
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(cell.handle->Detach().requests.size(), 1U);
}

}  // namespace
}  // namespace taskcell::gateway
