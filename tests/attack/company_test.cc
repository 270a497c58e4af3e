// What an attack comes to does not depend on which others were tried in its cell before.
#include "probe/attack/company.h"

#include <gtest/gtest.h>

#include <optional>

#include "launcher/native/request.h"
#include "probe/attack/attack.h"
#include "probe/cells/native_engine.h"
#include "tests/support/as_test_user.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using attack::Payload;
using attack::Report;

[[maybe_unused]] const auto* const kAsTestUser = testing::AddGlobalTestEnvironment(
    new AsTestUser({BuiltBeside("../bin/taskcell-attacker"), BuiltBeside("../bin/taskcell-init"),
                    BuiltBeside("../bin/taskcell-launch")}));  // NOLINT: gtest owns it

class CompanyTest : public testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                     "needs the user taskcell-test (tests/support/fixture.sh up)");
    Result<std::string> run_id = native::MakeRunId();
    ASSERT_TRUE(run_id.ok());
    auto world = attack::World::Make(AsTestUser::Copy("taskcell-attacker"), run_id.value());
    ASSERT_TRUE(world.ok()) << world.error().text;
    world_.emplace(std::move(world).value());
  }

  Report Attack(std::span<const Payload* const> payloads) {
    live::Setting setting;
    setting.uid = setting.gid = live::kInsideId;
    setting.places.launch_program = AsTestUser::Copy("taskcell-launch");
    setting.mounts = {world_->tools()};
    Report report = attack::Attack(engine_, setting, *world_, payloads, [] { return false; });
    EXPECT_FALSE(report.refusal.has_value()) << report.refusal->text;
    return report;
  }

 private:
  probe::NativeEngine engine_;
  std::optional<attack::World> world_;
};

TEST_F(CompanyTest, EachAttackAnswersAsItDoesByItself) {
  auto all = attack::Choose({});
  ASSERT_TRUE(all.ok());
  std::size_t compared = 0;
  for (std::span<const Payload* const> together : attack::OneCellEach(all.value())) {
    if (together.size() == 1) continue;
    Report report = Attack(together);
    ASSERT_EQ(report.rows.size(), together.size());
    for (const attack::Row& row : report.rows) {
      Report alone = Attack({&row.payload, 1});
      ASSERT_EQ(alone.rows.size(), 1U);
      EXPECT_EQ(row.inside.result, alone.rows[0].inside.result) << row.payload->name;
      EXPECT_EQ(row.verdict, alone.rows[0].verdict) << row.payload->name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100U);
}

}  // namespace
}  // namespace taskcell::test
