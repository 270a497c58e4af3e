// The escape hatch and an engine that fails in the middle of making the task's own container.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/cells/docker_engine.h"
#include "tests/support/fake_engine.h"
#include "tests/unit/gateway/task/host_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;

constexpr char kCutOff[] = "HTTP/1.1 2";
constexpr char kNobody[] = "2147483000";  // above every pid_max

// The real client of an engine; only its ids are a test's, which may run as root.
class ScriptedEngine final : public probe::DockerEngine {
 public:
  explicit ScriptedEngine(const std::string& socket_path)
      : DockerEngine(probe::Endpoint{socket_path, "a test", {}}, probe::EngineFlavour::kAny,
                     Report::kChecked) {}
  Result<probe::CellIds> ChooseIds(const std::string& /*run_id*/) override {
    return probe::CellIds{1234, 1235, true, "a test's ids"};
  }
};

// Where an engine stops making sense, what it answers there, and what the task comes to.
struct Row {
  const char* call;
  std::string answer;
  const char* code;
  bool bypassed;
};

class HatchEngineTest : public HostTaskTest {
 protected:
  static std::string PathOf(const test::FakeEngine::Request& request) {
    std::string path = request.target.substr(0, request.target.find('?'));
    if (path.starts_with("/v1.")) path.erase(0, path.find('/', 1));
    return path.starts_with("/images/") ? "/images" : path;
  }

  // A rootless engine that makes a container, starts it, and says that it runs.
  static std::string Answer(const test::FakeEngine::Request& request) {
    const std::string call = request.method + " " + PathOf(request);
    auto answer = [](const std::string& body) { return test::FakeEngine::Answer(200, body); };
    if (call == "GET /_ping") return answer("OK");
    if (call == "GET /info") return answer(R"({"ServerVersion":"20.10","Rootless":true})");
    if (call == "GET /containers/json") return answer("[]");
    if (call == "GET /images") return answer(R"({"Id":"sha256:aa"})");
    if (call == "POST /containers/create")
      return test::FakeEngine::Answer(201, R"({"Id":"c0ffee","Warnings":[]})");
    if (call == "POST /containers/c0ffee/start") return test::FakeEngine::Answer(204, "");
    if (call == "DELETE /containers/c0ffee") return test::FakeEngine::Answer(204, "");
    if (call == "GET /containers/c0ffee/json")
      return answer(Text(R"({"Id":"c0ffee","State":{"Status":"running","Running":true,"Pid":)",
                         kNobody,
                         R"(},"HostConfig":{"Memory":4294967296,"MemorySwap":4294967296,)"
                         R"("PidsLimit":128}})"));
    return test::FakeEngine::Answer(404, R"({"message":"no such thing"})");
  }

  void Use(const test::FakeEngine& fake) {
    surroundings_.make_engine =
        [&fake](const TaskcellSettings&) -> Result<std::unique_ptr<probe::CellEngine>> {
      return std::unique_ptr<probe::CellEngine>(
          std::make_unique<ScriptedEngine>(fake.socket_path()));
    };
    surroundings_.prove_limits = [](const Home&, probe::CellEngine&, const SandboxSettings&) {
      return Ok();
    };
  }

  void ExpectRow(const Row& row) {
    Put("config.toml", "[container.sandbox]\nwhen_unavailable = \"run_unsandboxed\"\n");
    PutProgram("claude", Text("touch ", path_, "/ran\n",
                              R"(echo '{"type":"result","subtype":"success","result":"host"}')"));
    std::filesystem::remove(path_ + "/ran");
    test::FakeEngine fake([&](const test::FakeEngine::Request& request) {
      const std::string call = request.method + " " + PathOf(request);
      return call == row.call ? row.answer : Answer(request);
    });
    Use(fake);
    const TaskAnswer answer = Run();
    const std::string where = Text(row.call, ": ", answer.message);
    EXPECT_EQ(answer.code, row.bypassed ? "ok" : row.code) << where;
    EXPECT_EQ(answer.ran_on_host, row.bypassed) << where;
    EXPECT_EQ(std::filesystem::exists(path_ + "/ran"), row.bypassed) << where;
    if (!row.bypassed) {
      EXPECT_THAT(answer.warnings, testing::Contains(HasSubstr("a cell of its own was made")))
          << where;
    }
    EXPECT_EQ(Events().size(), row.bypassed ? 2U : 1U) << where;
    EXPECT_THAT(AuditLog(), HasSubstr(Text("\"reason\":\"", row.code, "\""))) << where;
    std::filesystem::remove(path_ + "/security_audit.jsonl");
  }
};

// From the first answer on which no clear "no" can be read, a container may be there: one that runs
// what an image holds. A lost answer is no refusal.
TEST_F(HatchEngineTest, NothingIsBypassedOnceTheEngineMayHaveMadeTheTasksContainer) {
  const std::string other_limits = test::FakeEngine::Answer(
      200, R"({"Id":"c0ffee","State":{"Status":"created"},"HostConfig":{"Memory":0}})");
  for (const Row& row : {
           Row{"POST /containers/create", kCutOff, "docker_unreachable", false},
           Row{"POST /containers/c0ffee/start", kCutOff, "docker_unreachable", false},
           Row{"POST /containers/c0ffee/start", "", "docker_unreachable", false},
           Row{"GET /containers/c0ffee/json", kCutOff, "docker_unreachable", false},
           Row{"GET /containers/c0ffee/json", other_limits, "resource_limits_unenforced", false},
       })
    ExpectRow(row);
}

TEST_F(HatchEngineTest, AnEngineThatRefusesTheContainerIsBypassed) {
  for (const Row& row : {
           Row{"GET /images", test::FakeEngine::Answer(404, "{}"), "image_missing", true},
           Row{"POST /containers/create", test::FakeEngine::Answer(404, "{}"), "image_missing",
               true},
       })
    ExpectRow(row);
}

}  // namespace
}  // namespace taskcell::gateway
