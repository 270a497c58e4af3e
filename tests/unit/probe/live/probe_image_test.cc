#include "probe/live/probe_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/fake_engine.h"

namespace taskcell::live {
namespace {

using test::FakeEngine;

constexpr char kRunId[] = "0123456789abcdef0123456789abcdef";

std::string Between(const std::string& text, const std::string& start, const std::string& end) {
  std::size_t from = text.find(start);
  if (from == text.npos) return "";
  from += start.size();
  return text.substr(from, text.find(end, from) - from);
}

// An engine that keeps images by name, and as Podman 4.3 does takes no tag at an import.
class TaglessEngine {
 public:
  probe::Endpoint endpoint() const { return {engine_.socket_path(), "a test", {}}; }
  const std::set<std::string>& names() const { return names_; }

 private:
  std::string Answer(const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    if (request.method == "POST") {
      names_.insert(Between(request.target, "repo=", "&") + ":latest");
      return FakeEngine::Answer(
          200, R"({"status":"sha256:aa","progress":"","progressDetail":{},"id":"sha256:aa"})");
    }
    bool inspected = request.method == "GET";
    std::string name = Between(request.target, "/images/", inspected ? "/json" : "?");
    bool known = inspected ? names_.count(name) > 0 : names_.erase(name) > 0;
    if (!known) return FakeEngine::Answer(404, R"({"message":"No such image"})");
    return FakeEngine::Answer(200, inspected ? R"({"Id":"sha256:aa"})" : "[]");
  }

  std::set<std::string> names_;
  FakeEngine engine_{[this](const FakeEngine::Request& request) { return Answer(request); }};
};

TEST(ProbeImageTest, IsFoundAndRemovedWhereTheEngineTakesNoTag) {
  TaglessEngine engine;
  auto image = ProbeImage::Make(engine.endpoint(), "/proc/self/comm", kRunId, false);
  ASSERT_TRUE(image.ok()) << image.error().text;
  EXPECT_EQ(image->id(), "sha256:aa");
  ASSERT_EQ(engine.names().size(), 1U);
  EXPECT_THAT(*engine.names().begin(), testing::HasSubstr(kRunId));
  EXPECT_TRUE(image->Remove().ok());
  EXPECT_TRUE(engine.names().empty());
}

TEST(ProbeImageTest, IsKeptWhereThatWasAskedFor) {
  TaglessEngine engine;
  { auto image = ProbeImage::Make(engine.endpoint(), "/proc/self/comm", kRunId, true); }
  EXPECT_EQ(engine.names().size(), 1U);
}

}  // namespace
}  // namespace taskcell::live
