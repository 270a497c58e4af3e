#include "probe/engine/pull.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/fake_engine.h"

namespace taskcell::probe {
namespace {

using test::FakeEngine;
using testing::ElementsAre;
using testing::HasSubstr;

// An engine that answers a pull with `body`, in a HTTP answer of `status`, and has the image
// afterwards or not.
struct Pulled {
  Result<ImageAnswer> image;
  std::vector<std::string> statuses;
  std::string target;  // of the pull
};

Pulled Pull(const std::string& answer, bool is_there = true,
            const std::string& name = "reg:5/x:1") {
  FakeEngine engine([&](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    if (request.method == "POST") return answer;
    return is_there ? FakeEngine::Answer(200, R"({"Id":"sha256:aa","RepoDigests":["x@sha256:bb"]})")
                    : FakeEngine::Answer(404, "{}");
  });
  std::vector<std::string> statuses;
  Result<ImageAnswer> image =
      PullImage(Endpoint{engine.socket_path(), "a test", {}}, name, -1,
                [&](const PullLine& line) { statuses.push_back(line.layer + line.status); });
  std::string target;
  for (const FakeEngine::Request& request : engine.requests())
    if (request.method == "POST") target = request.target;
  return {std::move(image), std::move(statuses), target};
}

void ExpectFault(const Pulled& pulled, std::string_view code, const std::string& text) {
  ASSERT_FALSE(pulled.image.ok());
  EXPECT_EQ(pulled.image.error().code, code) << pulled.image.error().text;
  EXPECT_THAT(pulled.image.error().text, HasSubstr(text));
}

TEST(PullImageTest, TheEngineIsAskedForOneTagAndEachLineIsTold) {
  const Pulled pulled = Pull(FakeEngine::Answer(
      200,
      "{\"status\":\"Pulling from x\"}\r\n{\"id\":\"l1\",\"status\":\"Downloading\","
      "\"progressDetail\":{\"current\":5,\"total\":9}}\n{\"status\":\"Digest: d\"}"));
  ASSERT_TRUE(pulled.image.ok()) << pulled.image.error().text;
  EXPECT_EQ(pulled.image->id, "sha256:aa");
  EXPECT_THAT(pulled.image->digests, ElementsAre("x@sha256:bb"));
  EXPECT_THAT(pulled.statuses, ElementsAre("Pulling from x", "l1Downloading", "Digest: d"));
  EXPECT_EQ(pulled.target, "/v1.41/images/create?fromImage=reg:5/x:1");
}

TEST(PullImageTest, AnImageWithoutATagIsTheLatestAndNeverAllOfThem) {
  EXPECT_EQ(NameToPull("busybox").value(), "busybox:latest");
  EXPECT_EQ(NameToPull("reg.example:5000/x").value(), "reg.example:5000/x:latest");
  EXPECT_EQ(NameToPull("reg.example:5000/x:2").value(), "reg.example:5000/x:2");
  EXPECT_EQ(NameToPull("x@sha256:aa").value(), "x@sha256:aa");
  EXPECT_EQ(Pull(FakeEngine::Answer(200, ""), true, "x&tag=y z").target,
            "/v1.41/images/create?fromImage=x%26tag%3Dy%20z:latest");
}

TEST(PullImageTest, AnIdIsNoNameToPullBy) {
  for (const std::string& id : {"sha256:" + std::string(64, 'a'), std::string(64, '0')}) {
    const Pulled pulled = Pull(FakeEngine::Answer(200, ""), true, id);
    ExpectFault(pulled, "pull_failed", "is an image's id");
    EXPECT_EQ(pulled.target, "");
  }
}

TEST(PullImageTest, WhatTheEngineSaysWentWrongIsToldWithTheRemedy) {
  ExpectFault(
      Pull(FakeEngine::Answer(
          200, R"({"errorDetail":{"message":"manifest unknown"},"error":"manifest unknown"})")),
      "pull_failed", "manifest unknown; the registry has no such tag");
  ExpectFault(
      Pull(FakeEngine::Answer(200, "{\"status\":\"a\"}\n{\"error\":\"no space left\"}\n{}")),
      "pull_failed", "make room");
  ExpectFault(Pull(FakeEngine::Answer(404, R"({"message":"pull access denied for x"})")),
              "pull_failed", "docker login");
  ExpectFault(
      Pull(FakeEngine::Answer(500, R"({"message":"error: denied: Permission denied for x"})")),
      "pull_failed", "docker login");
  ExpectFault(
      Pull(FakeEngine::Answer(
          200, R"({"error":"open /var/lib/docker/image/repositories.json: permission denied"})")),
      "pull_failed", "a file of its own");
  ExpectFault(Pull(FakeEngine::Answer(500, R"({"message":"what is this"})")), "pull_failed",
              "see the engine's log");
}

TEST(PullImageTest, AnAnswerThatEndsWellWithoutTheImageIsAFailure) {
  ExpectFault(Pull(FakeEngine::Answer(200, R"({"status":"Digest: d"})"), false), "pull_failed",
              "the image is not there");
}

TEST(PullImageTest, HalfAnAnswerIsNoPull) {
  ExpectFault(Pull("HTTP/1.1 200 X\r\nContent-Length: 999\r\n\r\n{\"status\":\"a\"}\n"),
              "docker_unreachable", "cut off");
  ExpectFault(Pull("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"status\":"),
              "docker_unreachable", "cut off");
}

TEST(PullImageTest, ProgressThatMakesNoSenseEndsIt) {
  ExpectFault(Pull(FakeEngine::Answer(200, "pulling...\n")), "docker_unreachable", "is not JSON");
  ExpectFault(Pull(FakeEngine::Answer(200, "[1]")), "docker_unreachable", "another shape");
  const std::string line(kMaxPullLineBytes + 1, ' ');
  ExpectFault(Pull(FakeEngine::Answer(200, line)), "docker_unreachable", "too long");
  const std::string longest =
      "{\"status\":\"a\"}" + std::string(kMaxPullLineBytes - 14, ' ') + "\n";
  EXPECT_TRUE(Pull(FakeEngine::Answer(200, longest)).image.ok());
}

}  // namespace
}  // namespace taskcell::probe
