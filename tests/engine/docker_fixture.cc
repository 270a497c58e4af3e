#include "tests/engine/docker_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "launcher/base/text.h"
#include "launcher/sys/random.h"
#include "probe/engine/client.h"
#include "tests/support/as_test_user.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

using Json = nlohmann::json;

[[maybe_unused]] const auto* const kAsTestUser = testing::AddGlobalTestEnvironment(
    new AsTestUser({CELL_ACTOR_PATH, MAKE_IMAGE_PATH}));  // gtest owns it

std::string RandomHex() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  std::array<unsigned char, 16> bytes;
  if (!sys::FillRandom(bytes).ok()) std::abort();
  for (unsigned char byte : bytes) {
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

}  // namespace

void DockerTest::SetUp() {
  TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                   "needs the user taskcell-test (tests/support/fixture.sh up)");
  socket_ = DockerSocket();
  TASKCELL_REQUIRE(!socket_.empty(),
                   "needs a Docker engine on the test socket (tests/support/fixture.sh engine-up)");
  actor_ = AsTestUser::Copy("taskcell-cell-actor");
  init_ = actor_;
  run_id_ = RandomHex();
  home_label_ = RandomHex();
  sandbox_ = AsTestUser::directory() + "/sandbox-" + run_id_;
  run_directory_ = sandbox_ + "/" + run_id_;
  ASSERT_EQ(::mkdir(sandbox_.c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(run_directory_.c_str(), 0700), 0);
}

void DockerTest::TearDown() {
  if (socket_.empty()) return;
  EXPECT_EQ(::rmdir(run_directory_.c_str()), 0) << "something was left in the run directory";
  EXPECT_EQ(::rmdir(sandbox_.c_str()), 0);
  probe::HttpClient client(probe::Endpoint{socket_, "a test", {}});
  for (const std::string& image : images_) {
    auto removed = client.Call({"DELETE", "/images/" + image + "?force=1", {}});
    EXPECT_TRUE(removed.ok() && removed->status == 200) << image << " was left";
  }
}

void DockerTest::MakeImage(const std::string& behaviour, Json files, Json config) {
  image_ = Text("taskcell-test-", run_id_, ":", images_.size());
  images_.push_back(image_);
  engine_.reset();
  if (!behaviour.empty()) files["/behaviour"] = {{"text", behaviour}};
  if (files.empty()) files["/empty"] = {{"text", ""}};
  Json spec = {{"config", std::move(config)}, {"files", std::move(files)}};
  auto outcome =
      test::Run({"python3", AsTestUser::Copy("make_image.py"), socket_, image_, spec.dump()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
}

cell::CellPlan DockerTest::Plan() const {
  cell::CellPlan plan;
  plan.run_id = run_id_;
  plan.agent = "scout";
  plan.home_label = home_label_;
  plan.deadline_unix_ms = 4102444800000;
  plan.uid = 2000000007;  // of the test user's subordinate range
  plan.gid = 2000000007;
  plan.root = cell::RootKind::kImage;
  plan.root_source = image_;
  plan.tmpfs = {{"/tmp", 8U << 20U, 01777, true, false},
                {"/workspace", 16U << 20U, 0700, true, false}};
  plan.limits = {64U << 20U, 32, 500, 256};
  plan.network = cell::NetworkMode::kProvider;
  return plan;
}

probe::CellPlaces DockerTest::Places() const {
  probe::CellPlaces places;
  places.run_directory = run_directory_;
  places.init_program = init_;
  return places;
}

probe::DockerEngine& DockerTest::Engine() { return EngineAt(socket_); }

probe::DockerEngine& DockerTest::EngineAt(const std::string& socket_path) {
  engine_ = std::make_unique<probe::DockerEngine>(probe::Endpoint{socket_path, "a test", {}});
  return *engine_;
}

Result<std::unique_ptr<probe::RunningCell>> DockerTest::Make() { return Make(Plan()); }

Result<std::unique_ptr<probe::RunningCell>> DockerTest::Make(cell::CellPlan plan) {
  if (engine_ == nullptr) Engine();
  return engine_->Make(std::move(plan), Places());
}

std::size_t DockerTest::ContainersLeft() {
  probe::EngineClient client(probe::Endpoint{socket_, "a test", {}});
  auto listed = client.ListTasks(home_label_);
  EXPECT_TRUE(listed.ok());
  return listed.ok() ? listed->size() : 0;
}

bool DockerTest::NoContainerIsLeft() {
  return WaitFor([this] { return ContainersLeft() == 0; });
}

}  // namespace taskcell::test
