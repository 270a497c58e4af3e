// The client and a gateway in a container, beside an engine outside: what it must share with the
// host, and what is said where a part of that is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ostream>

#include "launcher/base/text.h"
#include "tests/engine/script_fixture.h"
#include "tests/support/engine_proxy.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What a container goes without.
enum class Without : uint8_t { kNothing, kSocket, kHome, kPrograms, kPids, kCgroups };

struct Row {
  const char* name;
  Without without;
  const char* code;   // of a script's answer
  const char* named;  // in it, and in what doctor says
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const std::vector<Row> kLacking = {
    {"WithoutTheSocket", Without::kSocket, "no_runtime", "map the engine's socket"},
    {"WithAnotherHome", Without::kHome, "runtime_unhealthy", "is another place for the engine"},
    {"WithOtherPrograms", Without::kPrograms, "runtime_unhealthy",
     "is another place for the engine"},
    {"WithoutTheHostsPids", Without::kPids, "runtime_unhealthy", "--pid=host"},
    {"WithoutTheHostsCgroups", Without::kCgroups, "runtime_unhealthy", "/sys/fs/cgroup:ro"},
};

class Contained : public ScriptFixture {
 protected:
  void SetUp() override {
    ScriptFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GiveHomeToUser();
    fs::create_directory(At("out"));
    ASSERT_EQ(::chown(At("out").c_str(), user_->uid, user_->gid), 0);
  }

  // The other directory looks the same, and is not.
  std::string Elsewhere(const std::string& directory) const {
    const std::string other = At("elsewhere");
    EXPECT_EQ(test::Run({"cp", "-a", directory, other}).status, 0);
    return other;
  }

  Json Binds(Without without) const {
    Json binds = Json::array();
    for (const char* path : {"/usr", "/bin", "/lib", "/lib64", "/etc/passwd", "/etc/group",
                             "/etc/subuid", "/etc/subgid", "/etc/ld.so.cache"})
      if (fs::exists(path)) binds.push_back(Text(path, ":", path, ":ro"));
    auto share = [&](const std::string& path, Without part, bool is_elsewhere) {
      if (without != part) {
        binds.push_back(Text(path, ":", path));
      } else if (is_elsewhere) {
        binds.push_back(Text(Elsewhere(path), ":", path));
      }
    };
    share(fs::path(Program("taskcell")).parent_path(), Without::kPrograms, true);
    share(Home(), Without::kHome, true);
    share(socket_, Without::kSocket, false);
    share("/sys/fs/cgroup", Without::kCgroups, false);
    binds.push_back(Text(TASKCELL_PROVIDER, ":/provider.py:ro"));
    binds.push_back(At("out") + ":/out");
    return binds;
  }

  Json Ask(const std::string& method, const std::string& target, const Json& body) const {
    const std::string raw =
        ForwardToEngine(socket_, {method, target, body.is_null() ? "" : body.dump()});
    const std::size_t begin = raw.find('{');
    return Json::parse(begin == raw.npos ? "null" : raw.substr(begin, raw.rfind('}') + 1 - begin),
                       nullptr, false);
  }

  // Runs a shell with the client in such a container; its exit status.
  int RunContained(Without without, const std::string& script) const {
    Json body = {
        {"Image", image_},
        {"Entrypoint", {"/bin/sh", "-c", script}},
        {"User", Text(user_->uid, ":", user_->gid)},
        {"WorkingDir", "/"},
        {"Env", {"PATH=/usr/bin:/bin", "HOME=/out", "DOCKER_HOST=unix://" + socket_}},
        {"HostConfig",
         {{"Binds", Binds(without)}, {"NetworkMode", "none"}, {"LogConfig", {{"Type", "none"}}}}}};
    if (without != Without::kPids) body["HostConfig"]["PidMode"] = "host";
    if (without != Without::kCgroups) body["HostConfig"]["CgroupnsMode"] = "host";
    const Json made = Ask("POST", "/containers/create", body);
    EXPECT_TRUE(made.is_object() && made.contains("Id")) << made;
    if (!made.is_object() || !made.contains("Id")) return -1;
    const std::string container = "/containers/" + made["Id"].get<std::string>();
    const Json started = Ask("POST", container + "/start", nullptr);
    EXPECT_TRUE(started.is_null()) << started;
    const Json ended = Ask("POST", container + "/wait", nullptr);
    (void)Ask("DELETE", container + "?force=1", nullptr);
    return ended.is_object() ? ended.value("StatusCode", -1) : -1;
  }
};

class ContainedTest : public Contained, public testing::WithParamInterface<Row> {};

TEST_P(ContainedTest, RunsWhereAllIsSharedAndNamesWhatIsNot) {
  const Row& row = GetParam();
  const std::string client = Program("taskcell");
  const int status = RunContained(
      row.without,
      Text("echo 'echo $((6 * 7))' | ", client, " script --language bash --json --home ", Home(),
           " >/out/answer 2>/out/errors; status=$?; ", client, " doctor --home ", Home(),
           " >/out/doctor 2>&1; ", client, " image check --home ", Home(), " >/out/image 2>&1; ",
           client, " doctor --hostile --attack kernel-crypto --home ", Home(),
           " >/out/hostile 2>&1; exit $status"));
  const std::string text = ReadText(At("out/answer"));
  const Json answer = Json::parse(text, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << status << text << ReadText(At("out/errors"));
  EXPECT_EQ(answer["code"], row.code) << answer;
  const std::string doctor = ReadText(At("out/doctor"));
  if (row.without == Without::kNothing) {
    EXPECT_EQ(status, 0);
    EXPECT_EQ(answer["stdout"], "42\n") << answer;
    EXPECT_EQ(answer["cell"]["verified"], true) << answer;
    EXPECT_THAT(doctor, HasSubstr("this is one (/.dockerenv)"));
    EXPECT_THAT(ReadText(At("out/image")), HasSubstr("claude"));
    EXPECT_THAT(ReadText(At("out/hostile")), HasSubstr("`/tmp` is another place for the engine"));
  } else {
    EXPECT_EQ(status, 125) << answer;
    EXPECT_THAT(answer["message"].get<std::string>(), HasSubstr(row.named));
    EXPECT_THAT(doctor, HasSubstr("docker_unreachable: "));
    for (const char* said : {"out/doctor", "out/image", "out/hostile"})
      EXPECT_THAT(ReadText(At(said)), HasSubstr(row.named)) << said;
  }
  EXPECT_EQ(Containers(), 0) << "nothing is left";
}

const auto kName = [](const auto& row) { return std::string(row.param.name); };
INSTANTIATE_TEST_SUITE_P(WithAll, ContainedTest,
                         testing::Values(Row{"WithAll", Without::kNothing, "ok", ""}), kName);
INSTANTIATE_TEST_SUITE_P(Container, ContainedTest, testing::ValuesIn(kLacking), kName);

// Of an agent, by a client itself and by a gateway.
class ContainedGateway : public Contained {
 protected:
  void SetUp() override {
    Contained::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Agent(60000);
    Put("agents/a1/wiki/value.txt", "the-value");
    GiveHomeToUser();
    std::ofstream(At("out/scenario.json")) << Json{
        {"steps", {{{"do", "read"}, {"path", "/agent/wiki/value.txt"}}}}, {"reply", "{last}"}};
  }

  // Lines of a shell: what the others use, one task's answer in `/out/FILE`, a gateway that serves
  // the home, and its end.
  std::string Names() const {
    return Text("bin=", fs::path(Program("taskcell")).parent_path().string(), " home=", Home(),
                "\nexport OPENAI_API_KEY=", kKey, "\ncd /out\n");
  }
  static std::string Run(std::string_view file) {
    return Text("\"$bin/taskcell\" run a1 'Read the value.' --json --home \"$home\" >", file,
                " 2>errors\nstatus=$?\n");
  }
  static constexpr std::string_view kServe =
      R"("$bin/taskcell-gateway" --home "$home" >gateway 2>&1 &
gateway=$!
until curl -s --unix-socket "$home/taskcell.sock" http://gateway/v1/status | grep -q '"accepting":true'
do kill -0 $gateway || exit 98; sleep 0.1; done
)";
  static constexpr std::string_view kStop = R"(kill $gateway
wait $gateway || exit 99
)";

  Json Answer(std::string_view file) const {
    const std::string text = ReadText(At(Text("out/", file)));
    const Json answer = Json::parse(text, nullptr, false);
    EXPECT_TRUE(answer.is_object())
        << text << ReadText(At("out/errors")) << ReadText(At("out/gateway"));
    return answer.is_object() ? answer : Json::object();
  }
};

class ContainedGatewayTest : public ContainedGateway {};

// With a provider on the container's own loopback, since it has no other network.
TEST_F(ContainedGatewayTest, AGatewayInAContainerRunsATask) {
  const int status = RunContained(
      Without::kNothing, Text(Names(), R"(
python3 -B /provider.py --key "$OPENAI_API_KEY" --scenario scenario.json --port-file port >provider 2>&1 &
provider=$!
until [ -s port ]; do kill -0 $provider || exit 97; sleep 0.1; done
export OPENAI_BASE_URL="http://127.0.0.1:$(cat port)/v1"
)",
                              kServe, Run("answer"), kStop, "kill $provider\nexit $status"));
  const Json answer = Answer("answer");
  EXPECT_EQ(status, 0) << answer << ReadText(At("out/provider"));
  EXPECT_EQ(answer["code"], "ok") << answer;
  EXPECT_EQ(answer["reply"], "the-value") << answer;
  EXPECT_EQ(answer["by_gateway"], true) << answer;
  EXPECT_EQ(Containers(), 0) << "nothing is left";
}

class ContainedRefusalTest : public ContainedGateway, public testing::WithParamInterface<Row> {};

TEST_P(ContainedRefusalTest, ATaskIsRefusedByNameByAClientItselfAndByAGateway) {
  const Row& row = GetParam();
  const int status =
      RunContained(row.without, Text(Names(), Run("own"), "[ $status = 3 ] || exit 96\n", kServe,
                                     Run("gateways"), kStop, "exit $status"));
  EXPECT_EQ(status, 3);
  for (const char* whose : {"own", "gateways"}) {
    const Json answer = Answer(whose);
    EXPECT_EQ(answer["code"], "docker_unreachable") << answer;
    EXPECT_EQ(answer["reply"], nullptr) << answer;
    EXPECT_EQ(answer["by_gateway"], std::string_view(whose) == "gateways") << answer;
    EXPECT_THAT(answer.value("message", "") + answer.value("detail", ""), HasSubstr(row.named));
  }
  EXPECT_EQ(Containers(), 0) << "nothing is left";
}

INSTANTIATE_TEST_SUITE_P(Container, ContainedRefusalTest, testing::ValuesIn(kLacking), kName);

}  // namespace
}  // namespace taskcell::test
