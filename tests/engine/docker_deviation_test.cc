// One thing in the create request changed on its way to the real engine: exactly that shows in the
// comparison, and nothing runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "probe/engine/create_request.h"
#include "probe/engine/http.h"
#include "tests/engine/docker_cell_fixture.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

struct Deviation {
  const char* name;
  void (*change)(Json& body);
  std::multiset<std::string> fields;
};
void PrintTo(const Deviation& deviation, std::ostream* out) { *out << deviation.name; }

class DeviationTest : public DockerCellTest, public testing::WithParamInterface<Deviation> {};

TEST_P(DeviationTest, ShowsAsExactlyItsMismatch) {
  const Deviation& deviation = GetParam();
  MakeJobImage();
  auto proxy = ProxyThatChanges(deviation.change);
  EngineAt(proxy->socket_path());
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_TRUE(request_changed_) << "control: the request was changed";
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_EQ(session.Differences(), deviation.fields) << session.Described();
  EXPECT_TRUE(made.value()->Kill().ok());
  EXPECT_TRUE(made.value()->Remove().ok());
}

Json& Host(Json& body) { return body["HostConfig"]; }

INSTANTIATE_TEST_SUITE_P(
    OfTheEngine, DeviationTest,
    testing::Values(
        Deviation{"Memory",
                  [](Json& b) { Host(b)["Memory"] = Host(b)["MemorySwap"] = 128 << 20; },
                  {"limits.memory", "limits.memory_and_swap"}},
        Deviation{"Swap", [](Json& b) { Host(b)["MemorySwap"] = -1; }, {"limits.memory_and_swap"}},
        Deviation{"NoMemory",
                  [](Json& b) { Host(b)["Memory"] = Host(b)["MemorySwap"] = 0; },
                  {"limits.memory", "limits.memory_and_swap"}},
        Deviation{"Pids", [](Json& b) { Host(b)["PidsLimit"] = 33; }, {"limits.pids"}},
        Deviation{"FewerPids", [](Json& b) { Host(b)["PidsLimit"] = 31; }, {"limits.pids"}},
        Deviation{"NoPids", [](Json& b) { Host(b)["PidsLimit"] = -1; }, {"limits.pids"}},
        Deviation{"Cpus", [](Json& b) { Host(b)["NanoCpus"] = 600000000; }, {"limits.cpu"}},
        Deviation{"NoCpus", [](Json& b) { Host(b)["NanoCpus"] = 0; }, {"limits.cpu"}},
        Deviation{"User", [](Json& b) { b["User"] = "2000000008:2000000007"; }, {"uid"}},
        Deviation{"Group", [](Json& b) { b["User"] = "2000000007:2000000008"; }, {"gid", "groups"}},
        Deviation{"MoreGroups", [](Json& b) { Host(b)["GroupAdd"] = {"42"}; }, {"groups"}},
        Deviation{
            "Capabilities", [](Json& b) { Host(b).erase("CapDrop"); }, {"capabilities.bounding"}},
        Deviation{"NewPrivileges",
                  [](Json& b) { Host(b)["SecurityOpt"] = Json::array(); },
                  {"no_new_privileges"}},
        // The engine's own filter is not what holds the job: ours is, on every engine alike.
        Deviation{"NoFilterOfTheEngine",
                  [](Json& b) { Host(b)["SecurityOpt"].push_back("seccomp=unconfined"); },
                  {}},
        // Docker makes its own files in /etc writable along with the root.
        Deviation{"WritableRoot",
                  [](Json& b) { Host(b)["ReadonlyRootfs"] = false; },
                  {"root.readonly", "denied:write /", "mount:/etc/hostname", "mount:/etc/hosts",
                   "mount:/etc/resolv.conf"}},
        Deviation{"ExtraTmpfs",
                  [](Json& b) { Host(b)["Tmpfs"]["/extra"] = "rw,size=4096"; },
                  {"mount:/extra"}},
        Deviation{"ExtraBind",
                  [](Json& b) {
                    Json extra = Host(b)["Mounts"][0];
                    extra["Target"] = "/extra";
                    Host(b)["Mounts"].push_back(extra);
                  },
                  {"mount:/extra"}},
        Deviation{
            "TmpfsSize",
            [](Json& b) {
              Host(b)["Tmpfs"]["/workspace"] =
                  "rw,exec,nosuid,nodev,size=33554432,mode=0700,uid=2000000007,gid=2000000007";
            },
            {"tmpfs:/workspace"}},
        Deviation{"TmpfsWithoutExec",
                  [](Json& b) {
                    Host(b)["Tmpfs"]["/tmp"] = "rw,noexec,nosuid,nodev,size=8388608,mode=1777";
                  },
                  {"tmpfs:/tmp"}},
        Deviation{"NoWorkspace",
                  [](Json& b) { Host(b)["Tmpfs"].erase("/workspace"); },
                  {"tmpfs:/workspace"}},
        Deviation{"AgentDirectoryWritable",
                  [](Json& b) {
                    for (Json& mount : Host(b)["Mounts"])
                      if (mount["Target"] == "/agent") mount["ReadOnly"] = false;
                  },
                  {"mount:/agent"}},
        Deviation{"AnotherAgentDirectory",
                  [](Json& b) {
                    for (Json& mount : Host(b)["Mounts"])
                      if (mount["Target"] == "/agent") mount["Source"] = "/usr/share";
                  },
                  {"mount:/agent"}},
        Deviation{"ExtraDevice",
                  [](Json& b) {
                    Host(b)["Devices"] = {{{"PathOnHost", "/dev/null"},
                                           {"PathInContainer", "/dev/extra/null"},
                                           {"CgroupPermissions", "rwm"}}};
                  },
                  {"device:/dev/extra/null"}},
        Deviation{"Hostname", [](Json& b) { b["Hostname"] = "other"; }, {"hostname"}},
        Deviation{"HostnameOfTheHost",
                  [](Json& b) {
                    Host(b)["UTSMode"] = "host";
                    b.erase("Hostname");
                  },
                  {"hostname", "namespace.uts"}},
        Deviation{"CgroupnsOfTheHost",
                  [](Json& b) { Host(b)["CgroupnsMode"] = "host"; },
                  {"namespace.cgroup"}},
        Deviation{"ExtraEnvironment",
                  [](Json& b) { b["Env"].push_back("LD_PRELOAD=/x"); },
                  {"environment:LD_PRELOAD"}}),
    [](const auto& row) { return std::string(row.param.name); });

// What can't be told field by field: how many interfaces the host has is its own affair.
TEST_F(DockerCellTest, BothListenersOfACellWithTunnelsAreHandedOver) {
  MakeJobImage();
  cell::CellPlan plan = AgentPlan();
  plan.network = cell::NetworkMode::kProvider;
  plan.tunnels = true;
  auto made = Make(plan);
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_EQ(session.Differences(), std::multiset<std::string>{}) << session.Described();
  EXPECT_NE(session.seen.inside.tunnel_port, 0);
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(DockerCellTest, AFirstProcessThatWasNotToldOfTunnelsIsNoCell) {
  MakeJobImage();
  auto proxy = ProxyThatChanges([](Json& body) {
    Json& words = body["Entrypoint"];
    words.erase(std::remove(words.begin(), words.end(), "--tunnels"), words.end());
  });
  EngineAt(proxy->socket_path());
  cell::CellPlan plan = AgentPlan();
  plan.network = cell::NetworkMode::kProvider;
  plan.tunnels = true;
  auto made = Make(plan);
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_TRUE(request_changed_) << "control: the request was changed";
  auto host = gate::GateHost::Open(made.value()->TakeGate());
  ASSERT_TRUE(host.ok()) << host.error().text;
  auto arrival = host->Attest(2, gate::GateHost::Clock::now() + std::chrono::seconds(10));
  ASSERT_FALSE(arrival.ok());
  EXPECT_EQ(arrival.error().code, "cell_mismatch");
  EXPECT_NE(arrival.error().text.find("number of ports"), std::string::npos)
      << arrival.error().text;
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(DockerCellTest, AnotherNetworkThanNoneShowsInItsInterfacesOnly) {
  MakeJobImage();
  auto proxy = ProxyThatChanges([](Json& body) { Host(body)["NetworkMode"] = "host"; });
  EngineAt(proxy->socket_path());
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_TRUE(request_changed_);
  CellSession session(*made.value(), cell::Engine::kDocker);
  auto fields = session.Differences();
  EXPECT_FALSE(fields.empty());
  for (const std::string& field : fields)
    EXPECT_TRUE(field.starts_with("interface:") || field == "routes" || field == "namespace.net")
        << session.Described();
  EXPECT_EQ(fields.count("namespace.net"), 1U);
  EXPECT_TRUE(made.value()->Remove().ok());
}

TEST_F(DockerCellTest, TheNetworkOfTheHostIsNoOpenNetwork) {
  MakeJobImage();
  auto proxy = ProxyThatChanges([](Json& body) { Host(body)["NetworkMode"] = "host"; });
  EngineAt(proxy->socket_path());
  cell::CellPlan plan = AgentPlan();
  plan.network = cell::NetworkMode::kOpen;
  auto made = Make(plan);
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_TRUE(request_changed_);
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_EQ(session.Differences(), std::multiset<std::string>{"namespace.net"})
      << session.Described();
  EXPECT_TRUE(made.value()->Remove().ok());
}

// How the host mounts the directories that come along is its own affair.
TEST_F(DockerCellTest, TheIpcNamespaceOfTheHostShowsAsShared) {
  MakeJobImage();
  auto proxy = ProxyThatChanges([](Json& body) { Host(body)["IpcMode"] = "host"; });
  EngineAt(proxy->socket_path());
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_TRUE(request_changed_);
  CellSession session(*made.value(), cell::Engine::kDocker);
  auto fields = session.Differences();
  EXPECT_EQ(fields.count("namespace.ipc"), 1U);
  for (const std::string& field : fields) {
    EXPECT_TRUE(field == "namespace.ipc" || field.starts_with("mount:/dev/"))
        << session.Described();
  }
  EXPECT_TRUE(made.value()->Remove().ok());
}

// Another container of this test, which shares what it has: a name made of the run's id.
class SharingTest : public DockerCellTest {
 protected:
  static std::string NameOf(const std::string& run_id) { return "taskcell-test-other-" + run_id; }
  static std::string OtherOf(const Json& body) {
    return "container:" + NameOf(body["Labels"][probe::kLabelRun]);
  }

  void SetUp() override {
    DockerCellTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeJobImage(Json::object(), {{"/behaviour", {{"text", "share"}}}});
    Json body = {{"Image", image_},
                 {"Entrypoint", {"/bin/actor"}},
                 {"Hostname", "taskcell"},
                 {"HostConfig", {{"NetworkMode", "none"}, {"IpcMode", "shareable"}}}};
    std::string name = NameOf(run_id_);
    auto created = Call("POST", "/containers/create?name=" + name, body.dump());
    ASSERT_EQ(created.status, 201) << created.body;
    ASSERT_EQ(Call("POST", "/containers/" + name + "/start").status, 204);
    EXPECT_EQ(Json::parse(Call("GET", "/containers/" + name + "/json").body)["State"]["Running"],
              true);
  }
  void TearDown() override {
    if (!image_.empty()) (void)Call("DELETE", "/containers/" + NameOf(run_id_) + "?force=1");
    DockerCellTest::TearDown();
  }

  probe::HttpAnswer Call(const char* method, const std::string& target, std::string body = {}) {
    probe::HttpClient client(probe::Endpoint{socket_, "a test", {}});
    auto response = client.Call({method, target, std::move(body)});
    EXPECT_TRUE(response.ok()) << response.error().text;
    return response.ok() ? std::move(response).value() : probe::HttpAnswer{};
  }
  std::multiset<std::string> DifferencesWhere(void (*change)(Json& body)) {
    auto proxy = ProxyThatChanges(change);
    EngineAt(proxy->socket_path());
    auto made = Make(AgentPlan());
    EXPECT_TRUE(made.ok()) << made.error().text;
    EXPECT_TRUE(request_changed_) << "control: the request was changed";
    if (!made.ok()) return {};
    CellSession session(*made.value(), cell::Engine::kDocker);
    auto fields = session.Differences();
    EXPECT_TRUE(made.value()->Remove().ok());
    return fields;
  }
};

TEST_F(SharingTest, TheNetworkOfAnotherContainerShowsInItsSocket) {
  auto fields = DifferencesWhere([](Json& body) {
    Host(body)["NetworkMode"] = OtherOf(body);
    body.erase("Hostname");
  });
  EXPECT_EQ(fields, std::multiset<std::string>{"socket:tcp"}) << testing::PrintToString(fields);
}

TEST_F(SharingTest, TheIpcNamespaceOfAnotherContainerShowsInItsObjects) {
  auto fields = DifferencesWhere([](Json& body) { Host(body)["IpcMode"] = OtherOf(body); });
  EXPECT_EQ(fields, (std::multiset<std::string>{"ipc:/dev/shm/shared", "ipc:shm"}))
      << testing::PrintToString(fields);
}

TEST_F(DockerCellTest, APrivilegedContainerIsSeenAsOne) {
  MakeJobImage();
  auto proxy = ProxyThatChanges([](Json& body) { Host(body)["Privileged"] = true; });
  EngineAt(proxy->socket_path());
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  EXPECT_TRUE(request_changed_);
  CellSession session(*made.value(), cell::Engine::kDocker);
  EXPECT_TRUE(session.Differences().contains("capabilities.bounding")) << session.Described();
  EXPECT_TRUE(made.value()->Remove().ok());
}

// Whoever may speak to the engine may start something in a container at any time. Before the job
// exists init sees it, and then there is none.
TEST_F(DockerCellTest, AProcessTheEngineStartsBeforeTheJobLetsNoJobStart) {
  MakeJobImage(Json::object(), {{"/behaviour", {{"text", "never"}}}});  // stays for a minute
  auto made = Make(AgentPlan());
  ASSERT_TRUE(made.ok()) << made.error().text;
  CellSession session(*made.value(), cell::Engine::kDocker);
  ASSERT_TRUE(session.Differences().empty()) << session.Described();
  probe::HttpClient engine(probe::Endpoint{socket_, "a test", {}});
  auto created = engine.Call({"POST", "/containers/dudu-task-" + run_id_ + "/exec",
                              R"({"Cmd":["/bin/actor"],"User":"2000000007"})"});
  ASSERT_TRUE(created.ok() && created->status == 201) << created->body;
  std::string id = Json::parse(created->body)["Id"];
  auto started = engine.Call({"POST", "/exec/" + id + "/start", R"({"Detach":true})"});
  ASSERT_TRUE(started.ok() && started->status == 200) << started->body;
  auto end = session.Run({"/bin/actor", "cat", "/agent/SOUL.md"});
  EXPECT_EQ(end.outcome, gate::JobOutcome::kRefused);
  EXPECT_EQ(end.refusal.stage, "processes");
  EXPECT_NE(end.refusal.text.find("came into the cell from outside"), std::string::npos)
      << end.refusal.text;
  EXPECT_EQ(session.out, "");
  EXPECT_TRUE(made.value()->Remove().ok());
}

// With a first process of the engine's own, or in the host's pid namespace, taskcell-init is not
// process 1 and never comes to the gate.
TEST_F(DockerCellTest, AFirstProcessOfTheEnginesOwnIsNoCell) {
  for (auto change : {+[](Json& body) { Host(body)["Init"] = true; },
                      +[](Json& body) { Host(body)["PidMode"] = "host"; },
                      +[](Json& body) {
                        body["Entrypoint"] = {"/bin/actor", "fail", "0"};
                      }}) {
    MakeJobImage();
    auto proxy = ProxyThatChanges(change);
    EngineAt(proxy->socket_path());
    auto made = Make(AgentPlan());
    ASSERT_FALSE(made.ok());
    EXPECT_TRUE(request_changed_);
    EXPECT_EQ(made.error().code, "cell_mismatch") << made.error().text;
    EXPECT_TRUE(NoContainerIsLeft());
  }
}

}  // namespace
}  // namespace taskcell::test
