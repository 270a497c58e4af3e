#include "probe/cells/docker_engine.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <ostream>
#include <set>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/engine/create_request.h"
#include "tests/support/fake_engine.h"

namespace taskcell::probe {
namespace {

using test::FakeEngine;

// Answers by method and the path behind the version; 404 for everything else.
FakeEngine::Handler Answers(std::map<std::string, std::string> answers) {
  return [answers = std::move(answers)](const FakeEngine::Request& request) {
    std::string path = request.target.substr(0, request.target.find('?'));
    if (path.starts_with("/v1.")) path.erase(0, path.find('/', 1));
    auto found = answers.find(request.method + " " + path);
    if (found != answers.end()) return found->second;
    return FakeEngine::Answer(404, R"({"message":"page not found"})");
  };
}

std::map<std::string, std::string> Healthy() {
  return {{"GET /_ping", FakeEngine::Answer(200, "OK")},
          {"GET /info", FakeEngine::Answer(200, R"({"ServerVersion":"20.10"})")},
          {"GET /containers/json", FakeEngine::Answer(200, "[]")}};
}

cell::CellPlan Plan() {
  cell::CellPlan plan;
  plan.run_id = std::string(32, 'a');
  plan.agent = "scout";
  plan.home_label = std::string(32, 'b');
  plan.uid = plan.gid = 100000;
  plan.root = cell::RootKind::kImage;
  plan.root_source = "x:1";
  plan.tmpfs = {{"/workspace", 4096, 0700, true, false}};
  plan.limits = {64U << 20U, 32, 500, 1024};
  return plan;
}

CellPlaces PlacesIn(const std::string& run_directory) {
  CellPlaces places;
  places.run_directory = run_directory;
  places.init_program = "/proc/self/exe";  // any program of this user's will do
  return places;
}

Status Reach(const std::string& socket_path) {
  return DockerEngine(Endpoint{socket_path, "a test", {}}).CheckReachable();
}

// A socket file that nothing listens on any more.
std::string DeadSocket() {
  std::string path = "/tmp/taskcell-dead-" + std::to_string(::getpid()) + ".sock";
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  EXPECT_EQ(::bind(fd, reinterpret_cast<struct sockaddr*>(&name), sizeof name), 0);
  ::close(fd);
  return path;
}

void ExpectUnreachable(const Status& reached, const std::string& text) {
  ASSERT_FALSE(reached.ok()) << text;
  EXPECT_EQ(reached.error().code, "docker_unreachable");
  EXPECT_NE(reached.error().text.find("from a test"), std::string::npos) << reached.error().text;
  EXPECT_NE(reached.error().text.find(text), std::string::npos) << reached.error().text;
}

TEST(DockerEngineTest, AHealthyEngineIsReachable) {
  FakeEngine engine(Answers(Healthy()));
  EXPECT_TRUE(Reach(engine.socket_path()).ok());
}

TEST(DockerEngineTest, AnAbsentSocketIsNamedWithItsSource) {
  ExpectUnreachable(Reach("/tmp/taskcell-no-such.sock"), "unix:///tmp/taskcell-no-such.sock");
}

// Each call an engine is checked by may be the one that goes wrong.
TEST(DockerEngineTest, ASocketNobodyListensOnIsNamedAndSaysSo) {
  std::string path = DeadSocket();
  ExpectUnreachable(Reach(path), "unix://" + path);
  ExpectUnreachable(Reach(path), "nothing listens on it");
  ::unlink(path.c_str());
}

TEST(DockerEngineTest, EveryHalfDeadEngineIsUnreachable) {
  struct Row {
    const char* what;
    std::string answer;
  };
  const Row rows[] = {{"garbage", "\x01\x02nonsense"},
                      {"half an answer", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"Ser"},
                      {"500", FakeEngine::Answer(500, R"({"message":"broken"})")},
                      {"nothing", ""},
                      {"a web server", FakeEngine::Answer(200, "<html>hello</html>")}};
  for (const char* call : {"GET /info", "GET /containers/json"}) {
    for (const Row& row : rows) {
      auto answers = Healthy();
      answers[call] = row.answer;
      FakeEngine engine(Answers(answers));
      Status reached = Reach(engine.socket_path());
      ASSERT_FALSE(reached.ok()) << call << " " << row.what;
      EXPECT_EQ(reached.error().code, "docker_unreachable") << call << " " << row.what;
    }
  }
}

TEST(DockerEngineTest, AnEngineThatAnswersButIsTooOldIsNotUnreachable) {
  FakeEngine engine([](const FakeEngine::Request&) {
    return std::string(
        "HTTP/1.1 200 X\r\nApi-Version: 1.24\r\nConnection: close\r\nContent-Length: 2\r\n\r\nOK");
  });
  Status reached = Reach(engine.socket_path());
  ASSERT_FALSE(reached.ok());
  EXPECT_EQ(reached.error().code, "engine_unsupported");
}

TEST(DockerEngineTest, ARootlessEngineMustProveItsLimitsHoweverItSaysSoAndWhateverItClaims) {
  struct Row {
    const char* info;
    bool rootless;
  };
  for (const Row& row :
       {Row{R"({"MemoryLimit":true,"PidsLimit":true,"Rootless":true,
               "SecurityOptions":["name=seccomp,profile=default"]})",
            true},
        Row{R"({"MemoryLimit":true,"PidsLimit":true,"SecurityOptions":["name=rootless"]})", true},
        Row{R"({"MemoryLimit":false,"PidsLimit":false,"SecurityOptions":["name=seccomp"]})",
            false}}) {
    auto answers = Healthy();
    answers["GET /info"] = FakeEngine::Answer(200, row.info);
    FakeEngine fake(Answers(answers));
    DockerEngine engine(Endpoint{fake.socket_path(), "a test", {}});
    ASSERT_TRUE(engine.CheckReachable().ok());
    EXPECT_EQ(engine.NeedsLimitsProbe(), row.rootless) << row.info;
  }
}

TEST(DockerEngineTest, AnotherDaemonAtTheSamePlaceIsAnotherEngine) {
  auto answers = Healthy();
  FakeEngine fake(
      [&answers](const FakeEngine::Request& request) { return Answers(answers)(request); });
  DockerEngine engine(Endpoint{fake.socket_path(), "a test", {}});
  std::set<std::string> identities;
  for (const char* id : {"one", "two", "one"}) {
    answers["GET /info"] = FakeEngine::Answer(200, Text(R"({"ID":")", id, R"("})"));
    ASSERT_TRUE(engine.CheckReachable().ok());
    identities.insert(engine.Identity());
  }
  EXPECT_EQ(identities.size(), 2U);
}

TEST(DockerEngineTest, AnEngineOfTheOtherFlavourIsRefusedByName) {
  FakeEngine fake(Answers(Healthy()));
  const Endpoint endpoint{fake.socket_path(), "a test", {}};
  EXPECT_TRUE(DockerEngine(endpoint, EngineFlavour::kDocker).CheckReachable().ok());
  Status podman = DockerEngine(endpoint, EngineFlavour::kPodman).CheckReachable();
  ASSERT_FALSE(podman.ok());
  EXPECT_EQ(podman.error().code, "docker_unreachable");
  EXPECT_NE(podman.error().text.find("is docker; set [taskcell] engine = \"docker\""),
            std::string::npos)
      << podman.error().text;
}

// What the engine was asked for, when it refuses at some step: whatever was made is removed.
struct Step {
  const char* name;
  const char* call;
  std::string answer;
  const char* code;
  bool removes;
};
void PrintTo(const Step& step, std::ostream* out) { *out << step.name; }

class MakeTest : public testing::TestWithParam<Step> {};

TEST_P(MakeTest, AFailureLeavesNothing) {
  const Step& step = GetParam();
  char pattern[] = "/tmp/taskcell-make-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern), nullptr);
  auto answers = Healthy();
  answers["GET /images/x:1/json"] = FakeEngine::Answer(200, R"({"Id":"sha256:aa"})");
  answers["POST /containers/create"] =
      FakeEngine::Answer(201, R"({"Id":"c0ffee","Warnings":["no swap limit"]})");
  answers["POST /containers/c0ffee/start"] = FakeEngine::Answer(204, "");
  answers["GET /containers/c0ffee/json"] =
      FakeEngine::Answer(200, R"({"Id":"c0ffee","State":{"Status":"exited","Pid":0}})");
  answers["DELETE /containers/c0ffee"] = FakeEngine::Answer(204, "");
  if (step.call != nullptr) answers[step.call] = step.answer;
  FakeEngine fake(Answers(answers));
  DockerEngine engine(Endpoint{fake.socket_path(), "a test", {}});

  auto made = engine.Make(Plan(), PlacesIn(pattern));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, step.code) << made.error().text;
  bool removed = false;
  for (const auto& request : fake.requests()) removed |= request.method == "DELETE";
  EXPECT_EQ(removed, step.removes);
  EXPECT_EQ(::rmdir(pattern), 0) << "something was left in the run directory";
}

INSTANTIATE_TEST_SUITE_P(
    Steps, MakeTest,
    testing::Values(
        Step{"ImageGone", "GET /images/x:1/json", FakeEngine::Answer(404, ""), "image_missing",
             false},
        Step{"ImageWithAVolumeOnProc", "GET /images/x:1/json",
             FakeEngine::Answer(200, R"({"Id":"sha256:aa","Config":{"Volumes":{"/proc":{}}}})"),
             "container_refused", false},
        Step{"ImageRemovedBeforeCreate", "POST /containers/create", FakeEngine::Answer(404, ""),
             "image_missing", false},
        Step{"CreateRefused", "POST /containers/create",
             FakeEngine::Answer(400, R"({"message":"invalid mount"})"), "container_create_failed",
             false},
        Step{"CreateAnswersNonsense", "POST /containers/create", FakeEngine::Answer(201, "{}"),
             "container_create_failed", false},
        Step{"StartRefused", "POST /containers/c0ffee/start",
             FakeEngine::Answer(500, R"({"message":"OCI runtime create failed"})"),
             "container_start_failed", true},
        Step{"StartNotAnswered", "POST /containers/c0ffee/start", "HTTP/1.1 2",
             "docker_unreachable", true},
        Step{"FirstProcessEnded", nullptr, "", "cell_mismatch", true},
        Step{"RemovedByItself", "GET /containers/c0ffee/json", FakeEngine::Answer(404, ""),
             "cell_mismatch", true}),
    [](const auto& row) { return std::string(row.param.name); });

// A container as it is made and inspected by an engine that calls itself rootless.
std::map<std::string, std::string> Rootless(const std::string& inspected) {
  auto answers = Healthy();
  answers["GET /info"] = FakeEngine::Answer(200, R"({"Rootless":true})");
  answers["GET /images/x:1/json"] = FakeEngine::Answer(200, R"({"Id":"sha256:aa"})");
  answers["POST /containers/create"] = FakeEngine::Answer(201, R"({"Id":"c0ffee"})");
  answers["GET /containers/c0ffee/json"] = FakeEngine::Answer(200, inspected);
  answers["POST /containers/c0ffee/start"] = FakeEngine::Answer(204, "");
  answers["DELETE /containers/c0ffee"] = FakeEngine::Answer(204, "");
  return answers;
}

struct Made {
  Error error;
  bool started = false;
};

Made MakeOn(FakeEngine& fake, DockerEngine::Report report = DockerEngine::Report::kChecked) {
  DockerEngine engine(Endpoint{fake.socket_path(), "a test", {}}, EngineFlavour::kAny, report);
  EXPECT_TRUE(engine.CheckReachable().ok());
  char pattern[] = "/tmp/taskcell-make-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern), nullptr);
  auto made = engine.Make(Plan(), PlacesIn(pattern));
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(::rmdir(pattern), 0) << "something was left in the run directory";
  Made result{made.error()};
  for (const auto& request : fake.requests())
    result.started |= request.target.find("/start") != std::string::npos;
  return result;
}

TEST(DockerEngineTest, ARootlessEngineThatReportsOtherLimitsIsNotStarted) {
  for (const char* host_config :
       {R"({"Memory":0,"MemorySwap":0,"PidsLimit":0})",
        R"({"Memory":67108864,"MemorySwap":-1,"PidsLimit":32})",
        R"({"Memory":67108864,"MemorySwap":67108864,"PidsLimit":33})", "{}"}) {
    FakeEngine fake(Answers(Rootless(Text(R"({"Id":"c0ffee","State":{"Status":"created"},)",
                                          R"("HostConfig":)", host_config, "}"))));
    const Made made = MakeOn(fake);
    EXPECT_EQ(made.error.code, "resource_limits_unenforced") << host_config << made.error.text;
    EXPECT_NE(made.error.text.find("it was not started"), std::string::npos) << made.error.text;
    EXPECT_FALSE(made.started) << host_config;
  }
  // For whoever wants to see what comes of it, it is started all the same.
  FakeEngine liar(Answers(
      Rootless(R"({"Id":"c0ffee","State":{"Status":"exited"},"HostConfig":{"Memory":0}})")));
  EXPECT_TRUE(MakeOn(liar, DockerEngine::Report::kIgnored).started);
  // Control: with the limits asked for it is started, and found ended.
  FakeEngine fake(Answers(
      Rootless(R"({"Id":"c0ffee","State":{"Status":"exited"},"HostConfig":{"Memory":67108864,)"
               R"("MemorySwap":67108864,"PidsLimit":32}})")));
  const Made made = MakeOn(fake);
  EXPECT_TRUE(made.started);
  EXPECT_EQ(made.error.code, "cell_mismatch");
}

// A 404 of a rootless engine says nothing of what root pulled.
TEST(DockerEngineTest, AnImageInRootsStoreIsToldFromOneThatIsNowhere) {
  auto without = Rootless("");
  without["GET /images/x:1/json"] = FakeEngine::Answer(404, R"({"message":"no such image"})");
  auto broken = Healthy();
  broken["GET /images/x:1/json"] = FakeEngine::Answer(500, R"({"message":"broken"})");
  FakeEngine own(Answers(without));
  FakeEngine has_it(Answers(Rootless("")));
  FakeEngine has_none(Answers(without));
  FakeEngine is_broken(Answers(broken));
  struct Row {
    std::vector<std::string> sockets;
    std::string told;
  };
  for (const Row& row :
       {Row{{has_it.socket_path()},
            "is another one (the image is there, at unix://" + has_it.socket_path() +
                "): pull it as this user"},
        Row{{has_none.socket_path()},
            "is another one (the image is not there either, at unix://" + has_none.socket_path() +
                ")"},
        Row{{own.socket_path(), "/tmp/taskcell-no-such.sock", is_broken.socket_path()},
            "is another one: pull it"},
        Row{{is_broken.socket_path(), has_it.socket_path()}, "the image is there"}}) {
    DockerEngine engine(Endpoint{own.socket_path(), "a test", {}});
    engine.AskRootAt(row.sockets);
    ASSERT_TRUE(engine.CheckReachable().ok());
    auto image = engine.CheckImage("x:1");
    ASSERT_FALSE(image.ok());
    EXPECT_EQ(image.error().code, "image_missing");
    EXPECT_NE(image.error().text.find(row.told), std::string::npos) << image.error().text;
    EXPECT_NE(image.error().text.find("`taskcell image pull`"), std::string::npos);
  }
  for (const auto& request : has_it.requests()) EXPECT_EQ(request.method, "GET");
  // A rootful engine's store is the only one.
  without["GET /info"] = FakeEngine::Answer(200, R"({"ServerVersion":"20.10"})");
  FakeEngine rootful(Answers(without));
  DockerEngine engine(Endpoint{rootful.socket_path(), "a test", {}});
  engine.AskRootAt({has_it.socket_path()});
  ASSERT_TRUE(engine.CheckReachable().ok());
  EXPECT_EQ(engine.CheckImage("x:1").error().text.find("root's"), std::string::npos);
}

TEST(DockerEngineTest, AnEngineWhoseProcessesAreNotHereIsUnreachable) {
  const std::string nobody = "2147483000";  // above every pid_max
  auto answers = Rootless(
      Text(R"({"Id":"c0ffee","State":{"Status":"running","Running":true,"Pid":)", nobody, "}}"));
  answers["GET /info"] = FakeEngine::Answer(200, R"({"ServerVersion":"20.10"})");
  FakeEngine fake(Answers(answers));
  const Made made = MakeOn(fake);
  EXPECT_EQ(made.error.code, "docker_unreachable") << made.error.text;
  EXPECT_NE(made.error.text.find("can't share a socket with this host"), std::string::npos);
  EXPECT_NE(made.error.text.find("from a test"), std::string::npos);
}

// A container's state as it is told one inspection after the other, the last for ever.
class Inspections {
 public:
  explicit Inspections(std::vector<std::string> states) : states_(std::move(states)) {}
  std::string Next() {
    const std::string& state = states_[std::min(told_++, states_.size() - 1)];
    return state.empty() ? FakeEngine::Answer(404, "{}")
                         : FakeEngine::Answer(200, Text(R"({"Id":"c0ffee","State":)", state, "}"));
  }
  std::size_t told() const { return told_; }

 private:
  std::vector<std::string> states_;
  std::size_t told_ = 0;
};

// An engine learns from others that a process of its ended, and then says for a while that it runs.
TEST(DockerEngineTest, AFirstProcessThatEndedBeforeTheEngineKnowsIsAMismatch) {
  const std::string running = R"({"Status":"running","Running":true,"Pid":2147483000})";
  for (const std::string& later :
       {std::string(R"({"Status":"exited","Pid":0})"), std::string(),
        std::string(R"({"Status":"running","Running":true,"Pid":2147483001})")}) {
    Inspections inspections({running, running, running, later});
    auto answers = Rootless("");
    FakeEngine fake([&](const FakeEngine::Request& request) {
      if (request.target.ends_with("/containers/c0ffee/json")) return inspections.Next();
      return Answers(answers)(request);
    });
    const Made made = MakeOn(fake, DockerEngine::Report::kIgnored);
    EXPECT_EQ(made.error.code, "cell_mismatch") << later << ": " << made.error.text;
    EXPECT_EQ(inspections.told(), 4U);
  }
}

// An engine in which one call hangs, until the test lets it go, when somebody had asked for the
// end.
class HangingEngine {
 public:
  HangingEngine(std::string call, bool all_hang)
      : call_(std::move(call)), all_hang_(all_hang), pipe_(sys::MakePipe().value()) {}
  ~HangingEngine() { release_.set_value(); }

  Error Make() {
    DockerEngine engine(Endpoint{fake_.socket_path(), "a test", {}});
    engine.CancelOn(pipe_.read_end.get());
    char pattern[] = "/tmp/taskcell-make-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern), nullptr);
    auto made = engine.Make(Plan(), PlacesIn(pattern));
    EXPECT_EQ(::rmdir(pattern), 0) << "something was left in the run directory";
    EXPECT_FALSE(made.ok());
    return made.ok() ? Error(Kind::kInternal, "made") : made.error();
  }
  bool Removed() {
    auto requests = fake_.requests();
    return std::any_of(requests.begin(), requests.end(),
                       [](const auto& request) { return request.method == "DELETE"; });
  }

 private:
  std::string Answer(const FakeEngine::Request& request) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (hangs_ ? all_hang_ : Text(request.method, " ", path).ends_with(call_)) {
      hangs_ = true;
      (void)sys::WriteAll(pipe_.write_end.get(), "x");
      released_.wait();
    }
    return Answers(answers_)(request);
  }

  const std::string call_;
  const bool all_hang_;
  std::map<std::string, std::string> answers_ = Inspected();
  sys::Pipe pipe_;
  std::atomic<bool> hangs_ = false;
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
  FakeEngine fake_{[this](const FakeEngine::Request& request) { return Answer(request); }};

  static std::map<std::string, std::string> Inspected() {
    const std::string state =
        Text(R"({"Id":"c0ffee","State":{"Status":"created"},"Config":{"Labels":{)"
             R"("com.duduclaw.task-sandbox.run":")",
             std::string(32, 'a'), R"("}}})");
    auto answers = Rootless(state);
    answers[Text("GET /containers/", ContainerName(std::string(32, 'a')), "/json")] =
        FakeEngine::Answer(200, state);
    return answers;
  }
};

TEST(DockerEngineTest, ACancelReachesEveryCallThatMakesACellAndWhatWasMadeIsRemoved) {
  for (const char* call : {"/containers/create", "/containers/c0ffee/start"}) {
    HangingEngine engine(call, false);
    const Error error = engine.Make();
    EXPECT_EQ(error.code, "stopped") << call << ": " << error.text;
    EXPECT_EQ(error.text.find("left behind"), std::string::npos) << error.text;
    EXPECT_TRUE(engine.Removed()) << call;
  }
}

TEST(DockerEngineTest, AnEngineThatAnswersNothingAnyMoreIsNotWaitedForAfterACancel) {
  for (const char* call : {"/containers/create", "/containers/c0ffee/start"}) {
    HangingEngine engine(call, true);
    const Error error = engine.Make();
    EXPECT_EQ(error.code, "stopped") << call << ": " << error.text;
    EXPECT_NE(error.text.find("no whole answer within 1000 ms"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find("`taskcell sweep` removes it"), std::string::npos) << error.text;
    EXPECT_FALSE(engine.Removed()) << call;
  }
}

TEST(DockerEngineTest, PodmanIsAskedForATmpfsAsItTakesOneAndGivenNoPlaceForItsOwn) {
  for (bool podman : {false, true}) {
    auto answers = Healthy();
    if (podman) answers["GET /info"] = FakeEngine::Answer(200, R"({"BuildahVersion":"1.28.2"})");
    answers["GET /images/x:1/json"] = FakeEngine::Answer(200, R"({"Id":"sha256:aa"})");
    answers["POST /containers/create"] = FakeEngine::Answer(400, R"({"message":"enough"})");
    FakeEngine fake(Answers(answers));
    DockerEngine engine(Endpoint{fake.socket_path(), "a test", {}});
    ASSERT_TRUE(engine.CheckReachable().ok());
    char pattern[] = "/tmp/taskcell-make-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    ASSERT_FALSE(engine.Make(Plan(), PlacesIn(pattern)).ok());
    EXPECT_EQ(::rmdir(pattern), 0);
    std::string body;
    for (const auto& request : fake.requests())
      if (request.target.find("/containers/create") != std::string::npos) body = request.body;
    EXPECT_NE(body.find("size=4096"), std::string::npos) << body;
    EXPECT_EQ(body.find("uid=") == std::string::npos, podman) << body;
    // It would put writable ones there.
    for (const char* covered : {"/run", "/tmp", "/var/tmp"})
      EXPECT_EQ(body.find(Text('"', covered, R"(":"ro,)")) != std::string::npos, podman) << body;
  }
}

TEST(DockerEngineTest, WarningsOfTheEngineAreQuotedAsACause) {
  auto answers = Healthy();
  answers["GET /images/x:1/json"] = FakeEngine::Answer(200, R"({"Id":"sha256:aa"})");
  answers["POST /containers/create"] =
      FakeEngine::Answer(201, R"({"Id":"c0ffee","Warnings":["no swap limit support"]})");
  answers["DELETE /containers/c0ffee"] = FakeEngine::Answer(204, "");
  FakeEngine fake(Answers(answers));
  DockerEngine engine(Endpoint{fake.socket_path(), "a test", {}});
  char pattern[] = "/tmp/taskcell-make-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern), nullptr);
  auto made = engine.Make(Plan(), PlacesIn(pattern));
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().text.find("the engine warned: no swap limit support"), std::string::npos)
      << made.error().text;
  EXPECT_EQ(::rmdir(pattern), 0);
}

}  // namespace
}  // namespace taskcell::probe
