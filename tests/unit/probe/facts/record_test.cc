#include "probe/facts/record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>

#include "tests/support/memory_host.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMany = 1U << 20U;

class RecordTest : public testing::Test {
 protected:
  RecordTest() {
    host_.Put("/proc/swaps", "Filename\n", 7, 0440);
    host_.Put("/etc/subuid", "a:1:2\n");
    host_.Forbid("/etc/subuid", EACCES);
    host_.Socket("/run/docker.sock", 0, 0660);
    host_.Put("/usr/bin/newuidmap", "ELF");
    host_.Attribute("/usr/bin/newuidmap", "security.capability", std::string("\0\1", 2));
    host_.Put("/etc/systemd/system/a.service.d/x.conf", "");
    host_.Put("/etc/systemd/system/a.service.d/y.txt", "");
    host_.Link("/etc/os-release", "../usr/lib/os-release");
  }

  test::MemoryHost host_;
};

// Each answer the same, from the tree that records and from the record.
TEST_F(RecordTest, AnswersAsTheHostDid) {
  RecordingTree recording(host_);
  auto ask = [](RecordedTree& tree) {
    sys::FileSeen swaps = tree.Read("/proc/swaps", kMany);
    EXPECT_EQ(swaps.text, "Filename\n");
    EXPECT_EQ(swaps.uid, 7U);
    EXPECT_EQ(swaps.mode, S_IFREG | 0440U);
    sys::FileSeen subuid = tree.Read("/etc/subuid", kMany);
    EXPECT_EQ(subuid.err, EACCES);
    EXPECT_TRUE(subuid.owner_known);
    EXPECT_TRUE(tree.Read("/etc/subgid", kMany).absent());
    EXPECT_TRUE(tree.Look("/run/docker.sock").IsKind(S_IFSOCK));
    EXPECT_TRUE(tree.Look("/usr/bin/newuidmap").text.empty());
    EXPECT_EQ(tree.ReadAttribute("/usr/bin/newuidmap", "security.capability").value(),
              std::string("\0\1", 2));
    EXPECT_EQ(tree.ReadAttribute("/proc/swaps", "security.capability").error().err, ENODATA);
    EXPECT_EQ(tree.ReadAttribute("/usr/bin/newuidmap", "user.x").error().err, ENODATA);
    EXPECT_EQ(tree.ReadLink("/etc/os-release").value(), "../usr/lib/os-release");
    EXPECT_EQ(tree.ReadLink("/etc/none").error().err, ENOENT);
    auto names = tree.List("/etc/systemd/system/a.service.d", 1);
    ASSERT_TRUE(names.ok());
    ASSERT_EQ(names->size(), 1U);
    EXPECT_EQ(names.value()[0].name, "x.conf");
    EXPECT_EQ(tree.List("/etc/systemd/system/b.service.d", 1).error().err, ENOENT);
    EXPECT_TRUE(tree.missed().empty());
  };
  // A directory with more entries than asked for could not be listed, reduced or not.
  EXPECT_FALSE(recording.List("/etc/systemd/system/a.service.d/", 1).ok());
  RecordingTree again(host_);
  (void)again.List("/etc/systemd/system/a.service.d", 2);
  ask(again);
  RecordedTree recorded(again.record());
  ask(recorded);
}

TEST_F(RecordTest, AsksOnceAndKeepsTheFirstAnswer) {
  RecordingTree recording(host_);
  (void)recording.Read("/proc/swaps", kMany);
  host_.Put("/proc/swaps", "other\n");
  int reads = host_.reads();
  EXPECT_EQ(recording.Read("//proc//swaps/", kMany).text, "Filename\n");
  EXPECT_EQ(host_.reads(), reads);
}

TEST_F(RecordTest, LimitOfTheReaderHolds) {
  RecordingTree recording(host_);
  (void)recording.Read("/proc/swaps", kMany);
  RecordedTree recorded(recording.record());
  EXPECT_TRUE(recorded.Read("/proc/swaps", 9).present());
  EXPECT_EQ(recorded.Read("/proc/swaps", 8).err, EFBIG);
}

TEST_F(RecordTest, WhatWasNotRecordedIsNotedAndNoGuess) {
  RecordingTree recording(host_);
  (void)recording.Look("/proc/swaps");
  RecordedTree recorded(recording.record());
  EXPECT_TRUE(recorded.Look("/proc/swaps").present());
  EXPECT_EQ(recorded.Read("/proc/swaps", kMany).state, sys::FileSeen::State::kUnreadable);
  EXPECT_EQ(recorded.Look("/etc").err, ENODATA);
  EXPECT_EQ(recorded.List("/etc", 9).error().err, ENODATA);
  EXPECT_EQ(recorded.Look("/etc").err, ENODATA);
  EXPECT_EQ(recorded.missed(), (std::vector<std::string>{"/proc/swaps", "/etc"}));
}

TEST_F(RecordTest, AFileWithoutARuleIsNotRecorded) {
  host_.Put("/proc/self/environ", "SECRET=1");
  host_.Put("/etc/shadow", "root:hash:");
  RecordingTree recording(host_);
  EXPECT_EQ(recording.Read("/proc/self/environ", kMany).err, ENODATA);
  EXPECT_FALSE(recording.Read("/etc/shadow", kMany).present());
  EXPECT_TRUE(recording.record().empty());
  EXPECT_EQ(recording.missed().size(), 2U);
}

TEST_F(RecordTest, PathsNoKernelTakesAreNotRecorded) {
  RecordingTree recording(host_);
  std::string path = "/" + std::string(PATH_MAX - 2, 'a');
  EXPECT_TRUE(recording.Look(path).absent());
  EXPECT_EQ(recording.Look(path + "a").err, ENAMETOOLONG);
  EXPECT_EQ(recording.record().size(), 1U);
  EXPECT_TRUE(recording.missed().empty());
}

}  // namespace
}  // namespace taskcell::probe
