#include "tests/engine/hostile_doctor_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string_view>

#include "launcher/base/text.h"
#include "tests/engine/task_engine.h"
#include "tests/support/background.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using namespace std::chrono_literals;

bool HostileDoctorTest::HasRuns() const {
  const std::string runs = Home() + "/sandbox/runs";
  return fs::exists(runs) && !fs::is_empty(runs);
}

std::vector<std::string> HostileDoctorTest::LaidOut() const {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/tmp"))
    if (entry.path().filename().string().starts_with(Text("taskcell-attack-", user_->uid, "-")))
      found.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with("taskcell-attack-"))
      found.push_back(entry.path());
  const Outcome objects = test::Run({"ipcs", "-m", "-q", "-s", "-c"});
  for (std::string_view line : Split(objects.out, '\n'))
    if (line.find(user_->name) != std::string_view::npos) found.emplace_back(line);
  return found;
}

namespace {

TEST_F(HostileDoctorTest, WhatIsTriedInCellsMadeAsATasksIsContained) {
  GiveHomeToUser();
  const Outcome run =
      Client({"doctor", "--hostile", "--attack", "files", "--attack", "namespaces", "--json"});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  const Json report = Json::parse(run.out, nullptr, false);
  EXPECT_THAT(report["engine"].get<std::string>(), testing::StartsWith(std::string(kTaskEngine)));
  EXPECT_EQ(report["differences"], Json::array());
  int contained = 0;
  for (const Json& row : report["attacks"]) {
    EXPECT_NE(row["verdict"], "escaped") << row;
    if (row["verdict"] == "contained") ++contained;
  }
  EXPECT_GE(contained, 8) << run.out;
  EXPECT_EQ(Containers(), 0);
  EXPECT_FALSE(HasRuns());
}

TEST_F(HostileDoctorTest, WhatKilledItLeavesIsTheSweeps) {
  GiveHomeToUser();
  Background run(Command({"doctor", "--hostile"}), AsUser(), At("output"));
  ASSERT_TRUE(WaitFor([&] { return HasRuns(); })) << ReadText(At("output"));
  run.Signal(SIGKILL);
  ASSERT_TRUE(run.Wait(20s).has_value());
  EXPECT_TRUE(WaitFor([&] { return Containers() == 0; }));
  // The engine may be about to remove the container still.
  EXPECT_TRUE(WaitFor([&] { return SweepLater()["directories"].size() == 1U; })) << SweepLater();
  EXPECT_FALSE(HasRuns());
  EXPECT_EQ(LaidOut(), std::vector<std::string>());
}

TEST_F(HostileDoctorTest, WhatItLaidOutBesideTheHomeIsTheSweepsAndTheNextOnes) {
  GiveHomeToUser();
  for (const bool is_swept : {true, false}) {
    Background run(Command({"doctor", "--hostile"}), AsUser(), At("output"));
    constexpr std::size_t kAll = 5;
    ASSERT_TRUE(WaitFor([&] { return HasRuns() && LaidOut().size() >= kAll; }))
        << ReadText(At("output"));
    const Outcome beside = Client({"sweep", "--json"});
    EXPECT_EQ(beside.status, 0) << beside.out << beside.err;
    EXPECT_GE(LaidOut().size(), kAll) << "control: while it runs it is there, and stays";
    run.Signal(SIGKILL);
    ASSERT_TRUE(run.Wait(20s).has_value());
    EXPECT_GE(LaidOut().size(), kAll) << "control: it is left";
    // A process of its own that still ends holds what it was given.
    EXPECT_TRUE(WaitFor([&] {
      const Outcome after =
          is_swept ? Client({"sweep"}) : Client({"doctor", "--hostile", "--attack", "write-usr"});
      EXPECT_LE(after.status, is_swept ? 0 : 2) << after.out << after.err;
      return LaidOut().empty();
    })) << testing::PrintToString(LaidOut());
    // The engine may be about to remove the container still.
    EXPECT_TRUE(WaitFor([&] {
      (void)SweepLater();
      return Containers() == 0 && !HasRuns();
    })) << SweepLater();
  }
}

TEST_F(HostileDoctorTest, AnUnknownAttackIsAWrongCommandLine) {
  GiveHomeToUser();
  const Outcome unknown = Client({"doctor", "--hostile", "--attack", "no-such-attack"});
  EXPECT_EQ(unknown.status, 2) << unknown.out;
  EXPECT_THAT(unknown.err, HasSubstr("no payload and no topic"));
  EXPECT_EQ(Client({"doctor", "--attack", "files"}).status, 2);
}

}  // namespace
}  // namespace taskcell::test
