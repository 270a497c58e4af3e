// The limits of a real engine's containers, broken for real; and engines that lie: a proxy drops or
// changes limits on their way to the daemon, or rewrites what the daemon says about them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "launcher/base/text.h"
#include "probe/engine/client.h"
#include "probe/live/leftovers.h"
#include "probe/live/live.h"
#include "probe/live/print.h"
#include "probe/live/probe_image.h"
#include "tests/engine/docker_cell_fixture.h"
#include "tests/support/break_limits.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;
using live::Report;
using live::Verdict;

// What a proxy makes of a create request, and of an inspection's answer.
using Change = void (*)(Json& body);

// The answer with its body changed; chunks of the engine's are put together.
std::string Rewrite(const std::string& answer, Change change) {
  std::size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  std::string head = answer.substr(0, end);
  std::string body = answer.substr(end + 4);
  if (Lower(head).find("transfer-encoding: chunked") != std::string::npos) {
    std::string whole;
    for (std::size_t at = 0; at < body.size();) {
      std::size_t line = body.find("\r\n", at);
      std::size_t size = ParseHex(body.substr(at, line - at)).value_or(0);
      if (size == 0) break;
      whole += body.substr(line + 2, size);
      at = line + 2 + size + 2;
    }
    body = whole;
  }
  Json json = Json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("HostConfig")) change(json);
  return FakeEngine::Answer(200, json.dump());
}

class DockerLiveTest : public DockerCellTest {
 protected:
  void SetUp() override {
    DockerCellTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    breaker_ = Program("taskcell-breaker");
    TASKCELL_REQUIRE(::access(breaker_.c_str(), X_OK) == 0,
                     "needs the programs where the test user can execute them");
  }

  // Only the daemon itself makes the image; cells are made through the proxy.
  Report BreakThrough(Change create, Change inspect) {
    auto image =
        live::ProbeImage::Make(probe::Endpoint{socket_, "a test", {}}, breaker_, run_id_, false);
    if (!image.ok()) {
      ADD_FAILURE() << image.error().text;
      return {};
    }
    FakeEngine proxy([&](const FakeEngine::Request& request) {
      FakeEngine::Request forwarded = request;
      if (create != nullptr && request.target.find("/containers/create") != std::string::npos) {
        Json body = Json::parse(request.body);
        create(body);
        forwarded.body = body.dump();
      }
      std::string answer = ForwardToEngine(socket_, forwarded);
      bool is_inspection = request.method == "GET" && request.target.ends_with("/json") &&
                           request.target.find("/containers/") != std::string::npos;
      return inspect != nullptr && is_inspection ? Rewrite(answer, inspect) : answer;
    });
    live::Setting setting;
    setting.uid = setting.gid = 2000000007;  // of the test user's subordinate range
    setting.root = cell::RootKind::kImage;
    setting.root_source = image->id();
    setting.places = Places();
    Report report = BreakLimits(EngineAt(proxy.socket_path()), setting, {});
    EXPECT_TRUE(image->Remove().ok());
    return report;
  }

  std::size_t ProbeImagesLeft() {
    probe::EngineClient client(probe::Endpoint{socket_, "a test", {}});
    auto images = client.ListImages(Text(live::kProbeImageLabel, "=1"));
    EXPECT_TRUE(images.ok());
    return images.ok() ? images->size() : 0;
  }

  std::vector<probe::ListedContainer> ProbeContainers() {
    probe::EngineClient client(probe::Endpoint{socket_, "a test", {}});
    auto listed = client.ListTasks(live::kProbeHomeLabel);
    EXPECT_TRUE(listed.ok());
    return listed.ok() ? listed.value() : std::vector<probe::ListedContainer>();
  }

  std::size_t ProbeContainersRun() {
    auto containers = ProbeContainers();
    return static_cast<std::size_t>(
        std::count_if(containers.begin(), containers.end(),
                      [](const auto& container) { return container.state != "created"; }));
  }

  Outcome ProbeProgram(std::vector<std::string> options, int timeout_ms = 60000) {
    std::vector<std::string> argv = {Program("taskcell-probe"), "engine", "unix://" + socket_};
    argv.insert(argv.end(), options.begin(), options.end());
    RunOptions run;
    run.timeout_ms = timeout_ms;
    Outcome outcome;
    for (int i = 0; i < kProbeTries; ++i) {
      outcome = test::Run(argv, run);
      if (outcome.status != kCouldNotTell) break;
    }
    return outcome;
  }

  static constexpr int kCouldNotTell = 3;
  std::string breaker_;
};

TEST_F(DockerLiveTest, EveryLimitOfAContainerHoldsAndTheEngineSaysSo) {
  Outcome outcome = ProbeProgram({"--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  Json report = Json::parse(outcome.out);
  ASSERT_EQ(report["limits"].size(), 9U);
  for (const Json& row : report["limits"]) {
    if (row["limit"] == "output" || row["limit"] == "deadline") continue;
    EXPECT_EQ(row["reported"], row["asked"]) << row;
    EXPECT_EQ(row["seen"], row["asked"]) << row;
  }
  EXPECT_EQ(report["warnings"], Json::array());
  EXPECT_EQ(ProbeContainers().size(), 0U);
  EXPECT_EQ(ProbeImagesLeft(), 0U);
}

struct Lie {
  const char* name;
  Change create;
  Change inspect;
  std::set<std::string> rest;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

class DockerLieTest : public DockerLiveTest, public testing::WithParamInterface<Lie> {};

TEST_P(DockerLieTest, IsCaught) {
  const Lie& lie = GetParam();
  Report report = BreakThrough(lie.create, lie.inspect);
  EXPECT_EQ(Rest(report), lie.rest) << ReportText(report, false);
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
}

Json& Host(Json& body) { return body["HostConfig"]; }

void SayAsAsked(Json& answer) {
  Json& host = Host(answer);
  host["Memory"] = host["MemorySwap"] = 64 << 20;
  host["PidsLimit"] = 64;
  host["NanoCpus"] = 200000000;
  for (auto& [target, options] : host["Tmpfs"].items()) options = "size=8388608";
}

void DropMemory(Json& body) { Host(body)["Memory"] = Host(body)["MemorySwap"] = 0; }
void DropPids(Json& body) { Host(body)["PidsLimit"] = -1; }
void DropCpu(Json& body) { Host(body)["NanoCpus"] = 0; }
void DoubleMemory(Json& body) { Host(body)["Memory"] = Host(body)["MemorySwap"] = 128 << 20; }
void AllowSwap(Json& body) { Host(body)["MemorySwap"] = -1; }
void DoubleTmpfs(Json& body) {
  Host(body)["Tmpfs"]["/workspace"] =
      "rw,noexec,nosuid,nodev,size=16777216,mode=0700,uid=2000000007,gid=2000000007";
}

INSTANTIATE_TEST_SUITE_P(
    OfAnEngine, DockerLieTest,
    testing::Values(
        // Limits that were lost, of which the engine speaks the truth ...
        Lie{"NoMemory", DropMemory, nullptr, {"memory:not_held", "swap:not_held"}},
        Lie{"NoPids", DropPids, nullptr, {"pids:not_held"}},
        Lie{"NoCpu", DropCpu, nullptr, {"cpu:not_held"}},
        Lie{"AnotherMemory", DoubleMemory, nullptr, {"memory:not_held", "swap:unknown"}},
        Lie{"Swap", AllowSwap, nullptr, {"swap:not_held"}},
        Lie{"AnotherTmpfs", DoubleTmpfs, nullptr, {"tmpfs:/workspace:not_held"}},
        // ... and of which it says that they are there.
        Lie{"NoMemoryDenied",
            DropMemory,
            SayAsAsked,
            {"memory:not_held", "memory:lie", "swap:not_held", "swap:lie"}},
        Lie{"NoPidsDenied", DropPids, SayAsAsked, {"pids:not_held", "pids:lie"}},
        Lie{"NoCpuDenied", DropCpu, SayAsAsked, {"cpu:not_held", "cpu:lie"}},
        Lie{"AnotherTmpfsDenied",
            DoubleTmpfs,
            SayAsAsked,
            {"tmpfs:/workspace:not_held", "tmpfs:/workspace:lie"}},
        // Limits that hold, whatever is said.
        Lie{"MemoryUnderstated",
            nullptr,
            [](Json& answer) { Host(answer)["Memory"] = 1 << 20; },
            {"memory:lie", "swap:lie"}},
        Lie{"PidsNotMentioned",
            nullptr,
            [](Json& answer) { Host(answer)["PidsLimit"] = nullptr; },
            {"pids:lie"}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST_F(DockerLiveTest, AnEngineThatSaysNothingOfLimitsIsJudgedByWhatHappens) {
  Report report =
      BreakThrough(nullptr, [](Json& answer) { answer["HostConfig"] = Json::object(); });
  EXPECT_EQ(Overall(report), Verdict::kHeld) << ReportText(report, false);
}

TEST_F(DockerLiveTest, ACellThatDiffersInMoreThanLimitsIsNamed) {
  Report report =
      BreakThrough([](Json& body) { Host(body)["SecurityOpt"] = Json::array(); }, nullptr);
  EXPECT_EQ(Rest(report), std::set<std::string>{}) << ReportText(report, false);
  ASSERT_EQ(report.differences.size(), 1U) << ReportText(report, false);
  EXPECT_TRUE(report.differences[0].starts_with("no_new_privileges")) << report.differences[0];
  EXPECT_EQ(Overall(report), Verdict::kNotHeld);
}

TEST_F(DockerLiveTest, AnImageStaysOnlyWhereItIsAskedFor) {
  probe::EngineClient client(probe::Endpoint{socket_, "a test", {}});
  auto kept = [&] {
    std::set<std::string> ids;
    auto images = client.ListImages(Text(live::kProbeImageLabel, "=kept"));
    EXPECT_TRUE(images.ok());
    if (!images.ok()) return ids;
    for (const probe::ListedImage& image : images.value()) ids.insert(image.id);
    return ids;
  };
  const std::set<std::string> before = kept();
  // Whether a busy host lets it tell all limits is another matter.
  Outcome outcome = ProbeProgram({"--keep-image", "--quiet"});
  EXPECT_TRUE(outcome.status == 0 || outcome.status == kCouldNotTell) << outcome.err;
  std::set<std::string> after = kept();
  EXPECT_GT(after.size(), before.size());
  for (const std::string& id : after) {
    if (before.contains(id)) continue;
    EXPECT_TRUE(client.RemoveImage(id).ok());
  }
  EXPECT_EQ(ProbeImagesLeft(), 0U);
}

// A container ends with its gate, and its engine removes it. What the engine had made but not
// started, and the image, wait for a later probe.
TEST_F(DockerLiveTest, AProbeThatIsKilledLeavesNothingThatRuns) {
  for (int after_ms : {300, 700, 1200, 2000}) {
    (void)ProbeProgram({}, after_ms);
    EXPECT_TRUE(WaitFor([&] { return ProbeContainersRun() == 0; }))
        << "killed after " << after_ms << " ms";
  }
  constexpr int64_t kLater = 4102444800;
  probe::EngineClient client(probe::Endpoint{socket_, "a test", {}});
  // The engine may still be about something it was asked for.
  EXPECT_TRUE(WaitFor([&] {
    live::RemoveLeftovers(client, kLater);
    return ProbeContainers().empty() && ProbeImagesLeft() == 0;
  }));
}

TEST_F(DockerLiveTest, AProbeThatIsAskedToEndLeavesNothing) {
  for (int after_s : {0, 1, 2}) {
    // timeout(1) sends SIGTERM to it and waits.
    Outcome outcome = test::Run(
        {"timeout", Text(after_s, ".3"), Program("taskcell-probe"), "engine", "unix://" + socket_});
    EXPECT_EQ(ProbeContainers().size(), 0U) << outcome.out;
    EXPECT_EQ(ProbeImagesLeft(), 0U) << outcome.out << outcome.err;
  }
}

}  // namespace
}  // namespace taskcell::test
