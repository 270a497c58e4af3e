#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/init/attest.h"
#include "launcher/init/confine.h"
#include "launcher/sys/file.h"

namespace taskcell::init {
namespace {

using cell::LimitsSeen;

// Limit files as descriptors, the way the launcher hands them over.
Result<LimitsSeen> Read(const std::map<std::string, std::string>& files) {
  std::vector<UniqueFd> open;
  std::vector<LimitDescriptor> descriptors;
  for (const auto& [name, text] : files) {
    open.push_back(sys::MakeMemfd("limit", 0).value());
    EXPECT_TRUE(sys::WriteAll(open.back().get(), text).ok());
    EXPECT_EQ(::lseek(open.back().get(), 0, SEEK_SET), 0);
    descriptors.push_back({name, open.back().get()});
  }
  return ReadLimits(descriptors, "/nonexistent");
}

TEST(ReadLimitsTest, Version1FilesAreTakenAsTheyAre) {
  LimitsSeen limits = Read({{"memory", "67108864\n"},
                            {"memsw", "67108864\n"},
                            {"pids", "32\n"},
                            {"cpu_quota", "50000\n"},
                            {"cpu_period", "100000\n"}})
                          .value();
  EXPECT_EQ(limits.memory_bytes, 67108864U);
  EXPECT_EQ(limits.memory_and_swap_bytes, 67108864U);
  EXPECT_EQ(limits.pids, 32U);
  EXPECT_EQ(limits.cpu_quota_us, 50000U);
  EXPECT_EQ(limits.cpu_period_us, 100000U);
}

TEST(ReadLimitsTest, Version2FilesAreAddedUp) {
  LimitsSeen limits =
      Read({{"memory", "4096\n"}, {"swap", "8192\n"}, {"cpu_max", "50000 100000\n"}}).value();
  EXPECT_EQ(limits.memory_and_swap_bytes, 12288U);
  EXPECT_EQ(limits.cpu_quota_us, 50000U);
  EXPECT_EQ(limits.cpu_period_us, 100000U);
  EXPECT_FALSE(limits.pids.has_value());
}

TEST(ReadLimitsTest, SharesAreReadOfBothVersions) {
  LimitsSeen limits = Read({{"cpu_set", "0-1,3\n"}, {"io_weight", "50\n"}}).value();
  EXPECT_EQ(limits.cpu_set, "0-1,3");
  EXPECT_EQ(limits.io_weight, 50U);
  EXPECT_EQ(Read({{"io_weight", "default 7\n8:0 9\n"}})->io_weight, 7U);
  EXPECT_FALSE(Read({{"pids", "1\n"}})->cpu_set.has_value());
  EXPECT_FALSE(Read({{"io_weight", ""}}).ok());
}

TEST(ReadLimitsTest, NoLimitIsUnlimitedInEveryNotation) {
  EXPECT_EQ(Read({{"memory", "max\n"}})->memory_bytes, LimitsSeen::kUnlimited);
  EXPECT_EQ(Read({{"memory", "9223372036854771712\n"}})->memory_bytes, LimitsSeen::kUnlimited);
  EXPECT_EQ(Read({{"cpu_quota", "-1\n"}})->cpu_quota_us, LimitsSeen::kUnlimited);
  EXPECT_EQ(Read({{"cpu_max", "max 100000\n"}})->cpu_quota_us, LimitsSeen::kUnlimited);
  EXPECT_EQ(Read({{"memory", "4096\n"}, {"swap", "max\n"}})->memory_and_swap_bytes,
            LimitsSeen::kUnlimited);
}

TEST(ReadLimitsTest, WhatIsNoLimitIsRefused) {
  for (const char* text : {"", "many", "-2", "1 2", "0x10", "18446744073709551616"}) {
    EXPECT_FALSE(Read({{"memory", text}}).ok()) << text;
  }
  EXPECT_FALSE(Read({{"cpu_max", "max\n"}}).ok());
  EXPECT_FALSE(Read({{"memory", std::string(4097, '1')}}).ok());
}

TEST(ReadLimitsTest, WithoutDescriptorsTheCgroupFileSystemIsRead) {
  std::string root = ::testing::TempDir() + "taskcell-limits-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  std::filesystem::create_directories(root + "/memory");
  std::filesystem::create_directories(root + "/pids");
  std::filesystem::create_directories(root + "/cpu,cpuacct");
  std::ofstream(root + "/memory/memory.limit_in_bytes") << "4096\n";
  std::ofstream(root + "/memory/memory.memsw.limit_in_bytes") << "8192\n";
  std::ofstream(root + "/pids/pids.max") << "max\n";
  std::ofstream(root + "/cpu,cpuacct/cpu.cfs_quota_us") << "50000\n";
  std::ofstream(root + "/cpu,cpuacct/cpu.cfs_period_us") << "100000\n";
  LimitsSeen limits = ReadLimits({}, root).value();
  EXPECT_EQ(limits.memory_bytes, 4096U);
  EXPECT_EQ(limits.memory_and_swap_bytes, 8192U);
  EXPECT_EQ(limits.pids, LimitsSeen::kUnlimited);
  EXPECT_EQ(limits.cpu_quota_us, 50000U);
  std::filesystem::remove_all(root);
  EXPECT_FALSE(ReadLimits({}, root)->memory_bytes.has_value());
}

TEST(WritableMountsTest, OnlyWhatTheTaskMayWriteIsListed) {
  std::vector<std::string> writable = WritableMounts(
                                          "1 0 0:1 / / rw - overlay overlay rw\n"
                                          "2 1 0:2 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw\n"
                                          "3 1 0:3 / /agent ro - ext4 /dev/vda rw\n"
                                          "4 1 0:4 / /dev rw,nosuid - tmpfs tmpfs rw\n"
                                          "5 4 0:5 / /dev/shm rw - tmpfs shm rw\n"
                                          "6 4 0:6 / /dev/mqueue rw - mqueue mqueue rw\n"
                                          "7 1 0:7 / /proc rw - proc proc rw\n"
                                          "8 7 0:8 /null /proc/keys rw - tmpfs tmpfs rw\n"
                                          "9 1 0:9 / /sys/fs/cgroup rw - tmpfs cgroup rw\n"
                                          "10 1 0:10 / /system rw - tmpfs tmpfs rw\n")
                                          .value();
  EXPECT_THAT(writable, ::testing::ElementsAre("/tmp", "/dev/shm", "/system"));
  EXPECT_FALSE(WritableMounts("nonsense\n").ok());
}

}  // namespace
}  // namespace taskcell::init
