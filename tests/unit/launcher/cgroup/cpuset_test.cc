#include "launcher/cgroup/cpuset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/launcher/cgroup/fake_tree.h"

namespace taskcell::cgroup {
namespace {

using testing::HasSubstr;

class CpusetTest : public FakeTreeTest {
 protected:
  void SetUp() override {
    FakeTreeTest::SetUp();
    Put("cpuset.effective_cpus", "0-3\n");
    Put("cpuset.effective_mems", "0\n");
    for (const char* file : {"run/cpuset.cpus", "run/cpuset.mems"}) Put(file, "\n");
    run_ = OpenBelow("run");
  }
  UniqueFd OpenBelow(const char* name) const {
    return sys::Open(path() + "/" + name, O_RDONLY | O_DIRECTORY).value();
  }

  UniqueFd run_;
};

TEST_F(CpusetTest, AnEmptyOneTakesWhatTheOneAboveHas) {
  ASSERT_TRUE(InheritCpuset(run_.get()).ok());
  EXPECT_EQ(Get("run/cpuset.cpus").substr(0, 3), "0-3");
  EXPECT_EQ(Get("run/cpuset.mems").substr(0, 1), "0");
}

TEST_F(CpusetTest, OneThatHasSomeKeepsThem) {
  Put("run/cpuset.cpus", "2\n");
  ASSERT_TRUE(InheritCpuset(run_.get()).ok());
  EXPECT_EQ(Get("run/cpuset.cpus"), "2\n");
}

// A file does not compute what is in force as a kernel does: it stays what it was.
TEST_F(CpusetTest, ProcessorsThatComeIntoForceAreTaken) {
  Put("run/cpuset.effective_cpus", "1-2\n");
  Status applied = ApplyCpuset(run_.get(), false, "1-2");
  EXPECT_TRUE(applied.ok()) << applied.error().text;
  EXPECT_EQ(Get("run/cpuset.cpus").substr(0, 3), "1-2");
  EXPECT_EQ(Get("run/cpuset.mems").substr(0, 1), "0");
  Put("run/cpuset.cpus.effective", "1-2\n");
  EXPECT_TRUE(ApplyCpuset(run_.get(), true, "1-2").ok());
}

TEST_F(CpusetTest, OnesThatDoNotAreRefusedWithThoseThatCanBeHad) {
  for (const char* in_force : {kCpusInForceV1, kCpusInForceV2}) {
    bool unified = in_force == std::string_view(kCpusInForceV2);
    Put(std::string("run/") + in_force, "0-1\n");
    Status applied = ApplyCpuset(run_.get(), unified, "1-2");
    ASSERT_FALSE(applied.ok());
    EXPECT_EQ(applied.error().kind, Kind::kUnsupported);
    EXPECT_THAT(applied.error().text, HasSubstr("1-2 can be had here, which are 0-1"));
  }
}

}  // namespace
}  // namespace taskcell::cgroup
