#include "probe/engine/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <ostream>

#include "tests/support/fake_engine.h"

namespace taskcell::probe {
namespace {

using test::FakeEngine;

EngineClient ClientOf(const FakeEngine& engine) {
  return EngineClient(Endpoint{engine.socket_path(), "a test", {}});
}

std::string WithVersion(int status, const std::string& body, const std::string& version) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nApi-Version: " + version +
         "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST(NegotiateTest, TheNewestVersionBothSidesKnowIsTaken) {
  EXPECT_EQ(NegotiateApi({24}, {41})->minor, 41);
  EXPECT_EQ(NegotiateApi({44}, {52})->minor, kNewestApi.minor);
  EXPECT_EQ(NegotiateApi({0}, kOldestApi)->minor, kOldestApi.minor);
  EXPECT_EQ(NegotiateApi(kNewestApi, {99})->minor, kNewestApi.minor);
}

TEST(NegotiateTest, NoVersionInCommonNamesBothSidesAndWhoMustUpdate) {
  auto old = NegotiateApi({12}, {kOldestApi.minor - 1});
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code, "engine_unsupported");
  EXPECT_NE(old.error().text.find("1.40"), std::string::npos);
  EXPECT_NE(old.error().text.find("update the engine"), std::string::npos);
  auto far = NegotiateApi({kNewestApi.minor + 1}, {99});
  ASSERT_FALSE(far.ok());
  EXPECT_NE(far.error().text.find("update taskcell"), std::string::npos);
}

TEST(NegotiateTest, VersionsAreParsedStrictly) {
  EXPECT_EQ(ParseApiVersion("1.41")->minor, 41);
  for (const char* bad : {"", "1", "1.", "2.0", "1.x", "1.4 ", "1.9999", "v1.41", "1.-1"})
    EXPECT_FALSE(ParseApiVersion(bad).ok()) << bad;
}

TEST(NegotiateTest, AnEngineThatRefusesOldVersionsIsAskedInOneItServes) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return WithVersion(200, "OK", "1.52");
    if (request.target == "/version") {
      return WithVersion(200, R"({"Version":"29.1.2","ApiVersion":"1.52","MinAPIVersion":"1.44"})",
                         "1.52");
    }
    if (request.target == "/v1.51/info")
      return WithVersion(200, R"({"ServerVersion":"29.1.2","Warnings":null})", "1.52");
    return WithVersion(400, R"({"message":"client version is too old"})", "1.52");
  });
  EngineClient client = ClientOf(engine);
  auto info = client.Info();
  ASSERT_TRUE(info.ok()) << info.error().text;
  EXPECT_EQ(info->server_version, "29.1.2");
  EXPECT_TRUE(info->warnings.empty());
}

TEST(NegotiateTest, AnOldEngineIsSpokenToInItsOwnVersion) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return WithVersion(200, "OK", "1.41");
    if (request.target == "/v1.41/info") return WithVersion(200, "{}", "1.41");
    return WithVersion(400, R"({"message":"client version is too new"})", "1.41");
  });
  EngineClient client = ClientOf(engine);
  EXPECT_TRUE(client.Info().ok());
}

TEST(NegotiateTest, TheVersionIsAskedForWhereThePingSaysNone) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/version")
      return WithVersion(200, R"({"ApiVersion":"1.42","MinAPIVersion":"1.12"})", "1.42");
    if (request.target == "/v1.42/info") return WithVersion(200, "{}", "1.42");
    return std::string("HTTP/1.1 404 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  EngineClient client = ClientOf(engine);
  EXPECT_TRUE(client.Info().ok());
}

TEST(NegotiateTest, AnsweringServerErrorsIsUnreachable) {
  FakeEngine engine(
      [](const FakeEngine::Request&) { return FakeEngine::Answer(500, R"({"message":"panic"})"); });
  EngineClient client = ClientOf(engine);
  auto version = client.Negotiate();
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().code, "docker_unreachable");
  EXPECT_NE(version.error().text.find("HTTP 500: panic"), std::string::npos);
}

TEST(EngineClientTest, AMissingImageSaysHowToPullIt) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    return FakeEngine::Answer(404, R"({"message":"No such image"})");
  });
  EngineClient client = ClientOf(engine);
  auto image = client.InspectImage("reg.example:5000/x:1");
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().code, "image_missing");
  EXPECT_NE(image.error().text.find("docker pull reg.example:5000/x:1"), std::string::npos);
  EXPECT_EQ(engine.requests().back().target, "/v1.41/images/reg.example:5000/x:1/json");
}

TEST(EngineClientTest, ANameCannotLeaveItsPlaceInThePath) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    return FakeEngine::Answer(404, "");
  });
  EngineClient client = ClientOf(engine);
  EXPECT_FALSE(client.InspectImage("x?y#z %2e\r\nA: b").ok());
  EXPECT_EQ(engine.requests().back().target, "/v1.41/images/x%3Fy%23z%20%252e%0D%0AA:%20b/json");
}

TEST(EngineClientTest, AnImageIsMadeOfAnArchiveAndNothingIsPulled) {
  std::string archive("tar\0bytes", 9);
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    if (request.method == "GET") return FakeEngine::Answer(200, R"({"Id":"sha256:aa"})");
    return FakeEngine::Answer(200, R"({"status":"sha256:aa"})");
  });
  EngineClient client = ClientOf(engine);
  auto id = client.ImportImage(archive, "taskcell-probe-r1:latest", "a.b=1");
  ASSERT_TRUE(id.ok()) << id.error().text;
  EXPECT_EQ(id.value(), "sha256:aa");
  auto requests = engine.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(
      requests[1].target,
      "/v1.41/images/create?fromSrc=-&repo=taskcell-probe-r1&tag=latest&changes=LABEL%20a.b%3D1");
  EXPECT_EQ(requests[1].body, archive);
}

TEST(EngineClientTest, AnImportThatFailedIsToldInTheEnginesWords) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    if (request.method == "GET") return FakeEngine::Answer(404, "");
    return FakeEngine::Answer(200, R"({"error":"no space left"})");
  });
  auto id = ClientOf(engine).ImportImage("tar", "taskcell-probe-r1:latest", "a.b=1");
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, "container_create_failed");
  EXPECT_NE(id.error().text.find("no space left"), std::string::npos) << id.error().text;
}

TEST(EngineClientTest, AnImageThatIsNotThereIsRemoved) {
  int status = 404;
  FakeEngine engine([&](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    return FakeEngine::Answer(status, "[]");
  });
  EngineClient client = ClientOf(engine);
  EXPECT_TRUE(client.RemoveImage("taskcell-probe-r1:latest").ok());
  status = 200;
  EXPECT_TRUE(client.RemoveImage("taskcell-probe-r1:latest").ok());
  status = 409;
  Status removed = client.RemoveImage("taskcell-probe-r1:latest");
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code, "cleanup_failed");
}

CreateRequest RequestOfRun(const std::string& run_id) {
  CreateRequest request;
  request.image_id = "sha256:aa";
  request.entrypoint = {"/run/taskcell/init"};
  request.plan.run_id = run_id;
  request.plan.agent = "scout";
  request.plan.uid = request.plan.gid = 100000;
  request.plan.root = cell::RootKind::kImage;
  request.plan.root_source = "image";
  request.plan.limits = {64 << 20, 32, 500, 1024};
  return request;
}

std::string Container(const std::string& run_id, const std::string& state) {
  return R"({"Id":"c0ffee","State":{"Status":")" + state +
         R"("},"Config":{"Labels":{"com.duduclaw.task-sandbox.run":")" + run_id + "\"}}}";
}

// What stands behind a name that a create finds taken.
struct TakenRow {
  const char* name;
  const char* run_label;
  const char* state;
  int seen_after_looks;
  bool is_ours;
  const char* code = "container_create_failed";
};
void PrintTo(const TakenRow& row, std::ostream* out) { *out << row.name; }

class TakenNameTest : public testing::TestWithParam<TakenRow> {
 protected:
  const std::string run_id_ = std::string(32, 'a');
};

// The engine makes the container, and the kept connection dies before its answer: libcurl sends the
// request again by a new one.
TEST_P(TakenNameTest, AfterARequestThatWasSentTwiceIsOursExactlyWhereItIsTheRuns) {
  const TakenRow& row = GetParam();
  std::atomic<int> creates = 0;
  std::atomic<int> looks = 0;
  FakeEngine engine(
      [&](const FakeEngine::Request& request) -> std::string {
        if (request.target == "/_ping") return FakeEngine::LastingAnswer(200, "OK");
        if (request.method == "POST") {
          if (++creates == 1) return "";
          return FakeEngine::LastingAnswer(409, R"({"message":"the name is in use"})");
        }
        if (++looks <= row.seen_after_looks)
          return FakeEngine::LastingAnswer(404, R"({"message":"No such container"})");
        return FakeEngine::LastingAnswer(200, Container(row.run_label, row.state));
      },
      FakeEngine::Close::kWhenItSaysSo);
  EngineClient client = ClientOf(engine);
  const Result<CreateAnswer> created = client.Create(RequestOfRun(run_id_));
  EXPECT_EQ(creates, 2) << "libcurl sends it again";
  EXPECT_EQ(engine.requests().back().target, "/v1.41/containers/dudu-task-" + run_id_ + "/json");
  ASSERT_EQ(created.ok(), row.is_ours) << (created.ok() ? "" : created.error().text);
  if (row.is_ours) {
    EXPECT_EQ(created->id, "c0ffee");
    return;
  }
  EXPECT_EQ(created.error().code, row.code) << created.error().text;
  EXPECT_NE(created.error().text.find("is in use"), std::string::npos) << created.error().text;
}

INSTANTIATE_TEST_SUITE_P(
    Containers, TakenNameTest,
    testing::Values(
        TakenRow{"Ours", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "created", 0, true},
        TakenRow{"OursThatIsNotShownYet", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "created", 2, true},
        TakenRow{"OfAnotherRun", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "created", 0, false},
        TakenRow{"WithoutALabel", "", "created", 0, false},
        TakenRow{"ThatRunsAlready", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "running", 0, false},
        TakenRow{"NeverShown", "", "created", 1 << 30, false, "docker_unreachable"}),
    [](const auto& row) { return std::string(row.param.name); });

// The answers of case G2-06: what a refused removal means is settled by a look at the container.
struct RemoveRow {
  const char* name;
  int delete_status;
  int later_delete_status;
  const char* state;  // nullptr: 404
  int gone_after_inspects;
  bool clean;
};
void PrintTo(const RemoveRow& row, std::ostream* out) { *out << row.name; }

class RemoveTest : public testing::TestWithParam<RemoveRow> {};

TEST_P(RemoveTest, IsCleanExactlyWhenTheContainerIsGone) {
  const RemoveRow& row = GetParam();
  int deletes = 0;
  int inspects = 0;
  FakeEngine engine([&](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    if (request.method == "DELETE") {
      int status = ++deletes == 1 ? row.delete_status : row.later_delete_status;
      return FakeEngine::Answer(status, status == 204 ? "" : R"({"message":"some words"})");
    }
    if (row.state == nullptr || ++inspects > row.gone_after_inspects)
      return FakeEngine::Answer(404, R"({"message":"No such container"})");
    return FakeEngine::Answer(
        200, std::string(R"({"Id":"c0ffee","State":{"Status":")") + row.state + "\"}}");
  });
  EngineClient client = ClientOf(engine);
  Status removed = client.Remove("c0ffee");
  EXPECT_EQ(removed.ok(), row.clean);
  if (!row.clean) {
    ASSERT_FALSE(removed.ok());
    EXPECT_EQ(removed.error().code, "cleanup_failed");
  }
}

constexpr int kNever = 1 << 30;
INSTANTIATE_TEST_SUITE_P(
    Answers, RemoveTest,
    testing::Values(RemoveRow{"Removed", 204, 204, nullptr, 0, true},
                    RemoveRow{"NotThere", 404, 404, nullptr, 0, true},
                    RemoveRow{"AlreadyInProgress", 409, 404, "removing", 1, true},
                    RemoveRow{"StillRunning", 409, 409, "running", kNever, false},
                    RemoveRow{"RunningThenForced", 409, 204, "running", kNever, true},
                    RemoveRow{"ImproperState", 500, 500, "running", kNever, false},
                    RemoveRow{"NeverEnds", 409, 409, "removing", kNever, false}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace taskcell::probe
