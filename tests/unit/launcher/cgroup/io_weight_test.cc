#include "launcher/cgroup/io_weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/launcher/cgroup/fake_tree.h"

namespace taskcell::cgroup {
namespace {

using testing::HasSubstr;

TEST(IoWeightTest, IsReadInEveryNotation) {
  EXPECT_EQ(ParseIoWeight("100\n"), 100U);
  EXPECT_EQ(ParseIoWeight("default 50\n8:0 20\n"), 50U);
  for (const char* text : {"", "default", "8:0 20", "max"})
    EXPECT_EQ(ParseIoWeight(text), std::nullopt);
}

TEST(IoWeightTest, OnlyADiskThatIsSwitchedToItSharesByWeight) {
  EXPECT_TRUE(IsScheduledByBfq("none mq-deadline [bfq]\n"));
  EXPECT_FALSE(IsScheduledByBfq("[none] mq-deadline bfq\n"));
  EXPECT_FALSE(IsScheduledByBfq("none\n"));
  EXPECT_TRUE(IsSharedByCost("8:0 enable=1 ctrl=auto rpct=0.00\n"));
  EXPECT_FALSE(IsSharedByCost("8:0 enable=0 ctrl=auto rpct=0.00\n"));
  EXPECT_FALSE(IsSharedByCost(""));
}

class IoWeightFileTest : public FakeTreeTest {};

TEST_F(IoWeightFileTest, BfqsOwnIsReadBeforeThatOfCost) {
  Put("io.weight", "default 100\n");
  EXPECT_EQ(ReadIoWeight(dir(), "", true).value(), 100U);
  EXPECT_EQ(ReadIoWeight(dir(), "", false).value(), 100U);
  Put("io.bfq.weight", "default 7\n");
  Put("blkio.bfq.weight", "9\n");
  EXPECT_EQ(ReadIoWeight(dir(), "", true).value(), 7U);
  EXPECT_EQ(ReadIoWeight(dir(), "", false).value(), 9U);
  Put("io.bfq.weight", "much\n");
  EXPECT_FALSE(ReadIoWeight(dir(), "", true).ok());
}

TEST_F(IoWeightFileTest, AKernelWithoutWeightsIsRefusedWithWhatToDo) {
  EXPECT_EQ(ReadIoWeight(dir(), "", true).value(), std::nullopt);
  for (bool unified : {false, true}) {
    Status applied = ApplyIoWeight(dir(), unified, 50);
    ASSERT_FALSE(applied.ok());
    EXPECT_THAT(applied.error().text, HasSubstr("queue/scheduler"));
  }
}

TEST_F(IoWeightFileTest, AWeightThatReadsBackOtherwiseIsRefused) {
  Put("blkio.bfq.weight", "1000");
  Status applied = ApplyIoWeight(dir(), false, 50);
  ASSERT_FALSE(applied.ok());
  EXPECT_THAT(applied.error().text, HasSubstr("was set to 50 but reads '5000'"));
}

}  // namespace
}  // namespace taskcell::cgroup
