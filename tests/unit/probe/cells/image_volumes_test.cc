#include "probe/cells/image_volumes.h"

#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

cell::CellPlan Plan() {
  cell::CellPlan plan;
  plan.mounts = {{"/srv/agent", "/agent", cell::EntryKind::kDirectory, 1, 2, false}};
  plan.tmpfs = {{"/workspace", 8192, 0700, true, false}};
  return plan;
}

ImageFacts Image(std::vector<std::string> volumes) {
  ImageFacts image;
  image.volumes = std::move(volumes);
  return image;
}

TEST(CoverVolumesTest, EachVolumeGetsOneEmptyReadOnlyTmpfs) {
  auto covers = CoverVolumes(Image({"/data", "/var/lib/db/", "/data"}), Plan());
  ASSERT_TRUE(covers.ok());
  ASSERT_EQ(covers->size(), 2U);
  EXPECT_EQ(covers.value()[0].target, "/data");
  EXPECT_EQ(covers.value()[1].target, "/var/lib/db");
  for (const auto& cover : covers.value()) {
    EXPECT_TRUE(cover.read_only);
    EXPECT_FALSE(cover.exec);
    EXPECT_EQ(cover.mode & 0222U, 0U);
    EXPECT_EQ(cover.size_bytes, kCoverBytes);
  }
}

TEST(CoverVolumesTest, AVolumeOnAPlannedTargetIsCoveredByThatAlready) {
  auto covers = CoverVolumes(Image({"/agent", "/workspace/", "/agents"}), Plan());
  ASSERT_TRUE(covers.ok());
  ASSERT_EQ(covers->size(), 1U);
  EXPECT_EQ(covers.value()[0].target, "/agents");
}

TEST(CoverVolumesTest, AVolumeThatCannotBeCoveredIsRefusedByName) {
  for (const char* volume : {"/", "//", "", "data", "/a/../b", "/a//b", "/proc", "/proc/x", "/sys",
                             "/sys/fs", "/dev", "/dev/shm/"}) {
    auto covers = CoverVolumes(Image({volume}), Plan());
    ASSERT_FALSE(covers.ok()) << volume;
    EXPECT_EQ(covers.error().code, "container_refused");
    EXPECT_NE(covers.error().text.find("VOLUME"), std::string::npos);
  }
  EXPECT_TRUE(CoverVolumes(Image({"/process", "/system", "/devices"}), Plan()).ok());
}

TEST(CoverVolumesTest, AsManyVolumesAsTheBoundAreCoveredAndOneMoreIsRefused) {
  std::vector<std::string> volumes;
  for (std::size_t i = 0; i < kMaxImageVolumes; ++i) volumes.push_back("/v" + std::to_string(i));
  EXPECT_EQ(CoverVolumes(Image(volumes), Plan())->size(), kMaxImageVolumes);
  volumes.push_back("/one-more");
  EXPECT_FALSE(CoverVolumes(Image(volumes), Plan()).ok());
}

}  // namespace
}  // namespace taskcell::probe
