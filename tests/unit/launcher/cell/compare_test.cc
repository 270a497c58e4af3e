#include "launcher/cell/compare.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <functional>
#include <map>

#include "launcher/base/text.h"
#include "launcher/cell/denied_calls.h"
#include "tests/unit/launcher/cell/sample_attestation.h"
#include "tests/unit/launcher/cell/sample_plan.h"

namespace taskcell::cell {
namespace {

CellPlan PlanFor(Engine engine) {
  CellPlan plan = SamplePlan();
  if (engine != Engine::kNative) return plan;
  plan.root = RootKind::kHost;
  plan.root_source.clear();
  plan.image_environment.clear();
  return plan;
}

std::string DescribeAll(const std::vector<Mismatch>& mismatches) {
  std::string text;
  for (const Mismatch& mismatch : mismatches) text += Describe(mismatch) + "\n";
  return text;
}

struct Deviation {
  const char* name;
  const char* field;
  std::function<void(Attestation&)> change;
  bool is_limit = false;
  Engine engine = Engine::kNative;
};

class CompareTest : public ::testing::TestWithParam<Deviation> {};

// The promise of Compare: a cell that differs in one field has exactly that mismatch, and the same
// cell without the difference has none.
TEST_P(CompareTest, ADeviationInOneFieldIsExactlyThatMismatch) {
  const Deviation& deviation = GetParam();
  CellPlan plan = PlanFor(deviation.engine);
  Attestation seen = MatchingAttestation(plan, deviation.engine);
  std::vector<Mismatch> none = Compare(plan, deviation.engine, seen);
  ASSERT_TRUE(none.empty()) << DescribeAll(none);
  deviation.change(seen);
  std::vector<Mismatch> found = Compare(plan, deviation.engine, seen);
  ASSERT_EQ(found.size(), 1U) << DescribeAll(found);
  EXPECT_EQ(found[0].field, deviation.field);
  EXPECT_EQ(found[0].is_limit, deviation.is_limit);
  EXPECT_FALSE(found[0].planned.empty());
  EXPECT_FALSE(found[0].found.empty());
}

std::string NameOf(const ::testing::TestParamInfo<Deviation>& tested) { return tested.param.name; }

using Seen = Attestation&;

INSTANTIATE_TEST_SUITE_P(
    Process, CompareTest,
    ::testing::Values(
        Deviation{"Pid", "pid", [](Seen s) { s.inside.pid = 2; }},
        Deviation{"RealUid", "uid", [](Seen s) { s.inside.uids[0] = 0; }},
        Deviation{"EffectiveUid", "uid", [](Seen s) { s.inside.uids[1] = 0; }},
        Deviation{"SavedUid", "uid", [](Seen s) { s.inside.uids[2] = 0; }},
        Deviation{"FileSystemUid", "uid", [](Seen s) { s.inside.uids[3] = 0; }},
        Deviation{"RealGid", "gid", [](Seen s) { s.inside.gids[0] = 0; }},
        Deviation{"FileSystemGid", "gid", [](Seen s) { s.inside.gids[3] = 42; }},
        Deviation{"Group", "groups", [](Seen s) { s.inside.groups = {42}; }},
        Deviation{"GroupBesideTheOwn", "groups", [](Seen s) { s.inside.groups.push_back(42); },
                  false, Engine::kDocker},
        Deviation{"Inheritable", "capabilities.inheritable",
                  [](Seen s) { s.inside.capabilities[0] = 1; }},
        Deviation{"Permitted", "capabilities.permitted",
                  [](Seen s) { s.inside.capabilities[1] = 1; }},
        Deviation{"Effective", "capabilities.effective",
                  [](Seen s) { s.inside.capabilities[2] = 1; }},
        Deviation{"Bounding", "capabilities.bounding",
                  [](Seen s) { s.inside.capabilities[3] = 1U << 21U; }},
        Deviation{"Ambient", "capabilities.ambient", [](Seen s) { s.inside.capabilities[4] = 1; }},
        Deviation{"NoNewPrivileges", "no_new_privileges",
                  [](Seen s) { s.inside.no_new_privileges = false; }},
        Deviation{"Dumpable", "dumpable", [](Seen s) { s.inside.dumpable = true; }},
        Deviation{"Hostname", "hostname", [](Seen s) { s.inside.hostname = "host"; }},
        Deviation{"WorkingDirectory", "working_directory",
                  [](Seen s) { s.inside.working_directory = "(unreachable)/root"; }},
        Deviation{"Environment", "environment:SECRET",
                  [](Seen s) { s.inside.environment_names.emplace_back("SECRET"); }},
        Deviation{"EnvironmentOfAnEngine", "environment:LD_PRELOAD",
                  [](Seen s) { s.inside.environment_names.emplace_back("LD_PRELOAD"); }, false,
                  Engine::kDocker},
        Deviation{"TheHostsKeyring", "keyring",
                  [](Seen s) { s.inside.keyring = s.outside.host_keyring; }},
        Deviation{"TheUsersKeyring", "keyring",
                  [](Seen s) { s.inside.keyring.description = "_uid_ses.1000"; }},
        Deviation{"AKeyringUnseen", "keyring",
                  [](Seen s) {
                    s.inside.keyring = {0, EPERM, ""};
                  }},
        Deviation{"TheHostsKeyringInAnEnginesCell", "keyring",
                  [](Seen s) { s.inside.keyring = s.outside.host_keyring; }, false,
                  Engine::kDocker},
        Deviation{"HostPid", "host_pid", [](Seen s) { s.outside.host_pid = 0; }},
        Deviation{"HostUid", "host_uid", [](Seen s) { s.outside.host_uids.fill(0); }},
        Deviation{"HostUidsDiffer", "host_uid", [](Seen s) { s.outside.host_uids[2] = 1; }},
        Deviation{"HostGid", "host_gid", [](Seen s) { s.outside.host_gids.fill(0); }}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Witness, CompareTest,
    ::testing::Values(
        Deviation{"Seccomp", "seccomp", [](Seen s) { s.inside.witness_seccomp_mode = 0; }},
        Deviation{"Filter", "seccomp.filter", [](Seen s) { s.inside.witness_filter = "12345678"; }},
        Deviation{"RowByAFilterOfNobodys", "denied:mount",
                  [](Seen s) {
                    for (DeniedCall& call : s.inside.denied_calls) {
                      if (call.name == "mount") call.by_filter = EPERM;
                    }
                  }},
        Deviation{"Landlock", "landlock", [](Seen s) { s.inside.landlock_applied = false; }},
        Deviation{"Nofile", "limits.nofile", [](Seen s) { ++s.inside.witness_nofile; }, true},
        Deviation{"FileSize", "limits.file_size",
                  [](Seen s) { s.inside.witness_file_bytes = LimitsSeen::kUnlimited; }, true},
        Deviation{"Core", "limits.core", [](Seen s) { s.inside.witness_core = 2; }, true},
        Deviation{"FileMask", "umask", [](Seen s) { s.inside.settings.file_mask = 0; }},
        Deviation{"Personality", "personality",
                  [](Seen s) { s.inside.settings.personality = 0x40000; }},
        Deviation{"Personality32", "personality", [](Seen s) { s.inside.settings.personality = 8; },
                  false, Engine::kDocker},
        Deviation{"Securebits", "securebits", [](Seen s) { s.inside.settings.securebits = 0; }},
        Deviation{"FirstInFirstOut", "scheduling.policy",
                  [](Seen s) { s.inside.settings.policy = 1; }},
        Deviation{"RoundRobin", "scheduling.policy", [](Seen s) { s.inside.settings.policy = 2; }},
        Deviation{"ByDeadline", "scheduling.policy", [](Seen s) { s.inside.settings.policy = 6; },
                  false, Engine::kDocker},
        Deviation{"RealTimeIo", "scheduling.io_class",
                  [](Seen s) { s.inside.settings.io_class = 1; }},
        Deviation{"RealTimePriority", "limits.rtprio",
                  [](Seen s) { s.inside.settings.limits[0] = 1; }, true},
        Deviation{"LockedMemory", "limits.memlock",
                  [](Seen s) { s.inside.settings.limits.back() = LimitsSeen::kUnlimited; }, true},
        Deviation{"RowTwice", "denied:mount",
                  [](Seen s) {
                    s.inside.denied_calls.push_back({"mount", EPERM});
                  }},
        Deviation{"UnknownRow", "denied:dance",
                  [](Seen s) {
                    s.inside.denied_calls.push_back({"dance", EPERM});
                  }}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Limits, CompareTest,
    ::testing::Values(
        Deviation{"MemoryInside", "limits.memory",
                  [](Seen s) { *s.inside.limits.memory_bytes += 4096; }, true},
        Deviation{"MemoryInsideLower", "limits.memory",
                  [](Seen s) { *s.inside.limits.memory_bytes -= 4096; }, true},
        Deviation{"MemoryUnlimited", "limits.memory",
                  [](Seen s) { s.inside.limits.memory_bytes = LimitsSeen::kUnlimited; }, true},
        Deviation{"MemoryOutside", "limits.memory",
                  [](Seen s) { s.outside.limits.memory_bytes = LimitsSeen::kUnlimited; }, true},
        Deviation{"MemoryOutsideMissing", "limits.memory",
                  [](Seen s) { s.outside.limits.memory_bytes.reset(); }, true},
        Deviation{"MemoryLowerOutsideWithoutInside", "limits.memory",
                  [](Seen s) {
                    s.inside.limits.memory_bytes.reset();
                    *s.outside.limits.memory_bytes -= 4096;
                  },
                  true},
        Deviation{"Swap", "limits.memory_and_swap",
                  [](Seen s) { *s.inside.limits.memory_and_swap_bytes *= 2; }, true},
        Deviation{"SwapOutside", "limits.memory_and_swap",
                  [](Seen s) { *s.outside.limits.memory_and_swap_bytes *= 2; }, true},
        Deviation{"SwapOutsideMissing", "limits.memory_and_swap",
                  [](Seen s) { s.outside.limits.memory_and_swap_bytes.reset(); }, true},
        Deviation{"Pids", "limits.pids", [](Seen s) { ++*s.inside.limits.pids; }, true},
        Deviation{"PidsOutside", "limits.pids",
                  [](Seen s) { s.outside.limits.pids = LimitsSeen::kUnlimited; }, true},
        Deviation{"CpuQuota", "limits.cpu", [](Seen s) { ++*s.inside.limits.cpu_quota_us; }, true},
        Deviation{"CpuQuotaLower", "limits.cpu", [](Seen s) { --*s.inside.limits.cpu_quota_us; },
                  true},
        Deviation{"CpuPeriod", "limits.cpu", [](Seen s) { s.inside.limits.cpu_period_us = 50'000; },
                  true},
        Deviation{"IoWeight", "limits.io_weight", [](Seen s) { ++*s.inside.limits.io_weight; },
                  true},
        Deviation{"IoWeightOutside", "limits.io_weight",
                  [](Seen s) { s.outside.limits.io_weight = kUsualIoWeight; }, true},
        Deviation{"IoWeightOutsideMissing", "limits.io_weight",
                  [](Seen s) { s.outside.limits.io_weight.reset(); }, true},
        Deviation{"CpuSet", "limits.cpu_set", [](Seen s) { s.inside.limits.cpu_set = "0-3"; },
                  true},
        Deviation{"CpuSetOutside", "limits.cpu_set",
                  [](Seen s) { s.outside.limits.cpu_set = "0-1"; }, true},
        Deviation{"CpuSetOutsideMissing", "limits.cpu_set",
                  [](Seen s) { s.outside.limits.cpu_set.reset(); }, true},
        Deviation{"OomGroup", "limits.oom_group",
                  [](Seen s) { s.outside.limits.oom_group = false; }, true},
        Deviation{"OomGroupMissing", "limits.oom_group",
                  [](Seen s) { s.outside.limits.oom_group.reset(); }, true},
        Deviation{"CpuOutside", "limits.cpu",
                  [](Seen s) { s.outside.limits.cpu_quota_us = LimitsSeen::kUnlimited; }, true},
        Deviation{"CpuOutsideMissing", "limits.cpu",
                  [](Seen s) { s.outside.limits.cpu_period_us.reset(); }, true}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Channels, CompareTest,
    ::testing::Values(
        Deviation{"Interface", "interface:eth0",
                  [](Seen s) {
                    s.inside.interfaces.push_back({"eth0", 0});
                  }},
        Deviation{"TunnelUp", "interface:sit0",
                  [](Seen s) { s.inside.interfaces[1].flags |= IFF_UP; }},
        Deviation{"LoopbackDown", "interface:lo",
                  [](Seen s) { s.inside.interfaces[0].flags = IFF_LOOPBACK; }},
        Deviation{"LoopbackMissing", "interface:lo",
                  [](Seen s) { s.inside.interfaces.erase(s.inside.interfaces.begin()); }},
        Deviation{"Route", "routes",
                  [](Seen s) { s.inside.routes += "eth0\t00000000\t010011AC\t0003\n"; }},
        Deviation{"Route6", "routes",
                  [](Seen s) { s.inside.routes += "00 00 00 00 00 0 0 0 0     eth0\n"; }},
        Deviation{"Listener", "listener", [](Seen s) { s.inside.listener_port = 0; }},
        Deviation{"TunnelListener", "tunnel listener",
                  [](Seen s) { s.inside.tunnel_port = 40002; }},
        Deviation{"ExtraDescriptor", "descriptor:7",
                  [](Seen s) {
                    s.inside.descriptors.push_back({7, "/", S_IFDIR | 0755, O_RDONLY, 0});
                  }},
        Deviation{"SecondSocket", "descriptor:8",
                  [](Seen s) {
                    s.inside.descriptors.push_back({8, "socket:[5]", S_IFSOCK, O_RDWR, 0});
                  }},
        Deviation{"DirectoryAsInput", "descriptor:0",
                  [](Seen s) { s.inside.descriptors[0].mode = S_IFDIR | 0755; }},
        Deviation{"PathAsInput", "descriptor:0",
                  [](Seen s) { s.inside.descriptors[0].access = O_PATH; }},
        Deviation{"DiskAsInput", "descriptor:0",
                  [](Seen s) { s.inside.descriptors[0].mode = S_IFBLK | 0666; }},
        Deviation{"OtherDeviceAsInput", "descriptor:0",
                  [](Seen s) { s.inside.descriptors[0].device = makedev(1, 1); }},
        Deviation{"ProcessFileAsError", "descriptor:2",
                  [](Seen s) { s.inside.descriptors[2].filesystem = PROC_SUPER_MAGIC; }},
        Deviation{"PidfdAsOutput", "descriptor:1",
                  [](Seen s) { s.inside.descriptors[1].mode = 0600; }},
        Deviation{"WritableLimitFile", "descriptor:4",
                  [](Seen s) { s.inside.descriptors[4].access = O_RDWR; }},
        Deviation{"LimitDirectory", "descriptor:4",
                  [](Seen s) { s.inside.descriptors[4].mode = S_IFDIR | 0755; }},
        Deviation{"LimitFileElsewhere", "descriptor:4",
                  [](Seen s) { s.inside.descriptors[4].filesystem = EXT4_SUPER_MAGIC; }},
        Deviation{"NoGate", "descriptor:gate",
                  [](Seen s) { s.inside.descriptors.erase(s.inside.descriptors.begin() + 3); }}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Inventory, CompareTest,
    ::testing::Values(
        Deviation{"AnotherProcess", "process:7",
                  [](Seen s) {
                    s.inside.processes = {{7, "sh"}};
                  }},
        Deviation{"AProcessThatEnded", "process:7",
                  [](Seen s) {
                    s.inside.processes = {{7, ""}};
                  }},
        Deviation{"ExtraDevice", "device:/dev/fuse",
                  [](Seen s) {
                    s.inside.devices.push_back({"/dev/fuse", S_IFCHR | 0666, makedev(10, 229)});
                  }},
        Deviation{"AKnownDeviceUnderAnotherName", "device:/dev/extra",
                  [](Seen s) { s.inside.devices[0].path = "/dev/extra"; }},
        Deviation{"AnotherDeviceUnderAKnownName", "device:/dev/null",
                  [](Seen s) { s.inside.devices[0].number = makedev(1, 1); }},
        Deviation{"ADiskUnderAKnownName", "device:/dev/null",
                  [](Seen s) { s.inside.devices[0].mode = S_IFBLK | 0666; }}),
    NameOf);

// A plan with a filter of its own: each call that it was asked about got its very answer.
TEST(CompareFilterTest, TheAnswerOfAnOwnFilterIsWhatItSaysAndWhatItLeavesOpenIsNamed) {
  CellPlan plan = PlanFor(Engine::kNative);
  plan.filter = std::string(16, 'f');
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  EXPECT_EQ(Compare(plan, Engine::kNative, seen).size(), 1U);
  seen.inside.witness_filter = plan.filter;
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  auto with = [&](int32_t result, int32_t by_filter) {
    for (DeniedCall& call : seen.inside.denied_calls) {
      if (call.name == "ptrace") call = {"ptrace", result, by_filter};
    }
    std::vector<Mismatch> found = Compare(plan, Engine::kNative, seen);
    EXPECT_TRUE(found.empty() || found[0].field == "denied:ptrace");
    return found.empty();
  };
  EXPECT_TRUE(with(ENOSYS, ENOSYS));
  EXPECT_FALSE(with(EPERM, ENOSYS));
  EXPECT_FALSE(with(0, ENOSYS));
  EXPECT_TRUE(with(0, DeniedCall::kEnds));
  EXPECT_TRUE(CallsLeftOpen(seen.inside).empty());
  EXPECT_FALSE(with(EPERM, DeniedCall::kLeftOpen));
  EXPECT_TRUE(with(0, DeniedCall::kLeftOpen));
  EXPECT_EQ(CallsLeftOpen(seen.inside), std::vector<std::string>{"ptrace"});
}

TEST(CompareFilterTest, AnOwnFilterMayNotLeaveOpenWhatReachesPastTheCell) {
  CellPlan plan = PlanFor(Engine::kNative);
  plan.filter = std::string(16, 'f');
  for (const char* name : {"ioctl TIOCSTI", "ioctl TIOCLINUX", "setrlimit CORE"}) {
    Attestation seen = MatchingAttestation(plan, Engine::kNative);
    seen.inside.witness_filter = plan.filter;
    ASSERT_TRUE(Compare(plan, Engine::kNative, seen).empty());
    for (DeniedCall& call : seen.inside.denied_calls) {
      if (call.name == name) call = {name, 0, DeniedCall::kLeftOpen};
    }
    std::vector<Mismatch> found = Compare(plan, Engine::kNative, seen);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].field, Text("denied:", name));
  }
}

TEST(CompareNamespacesTest, EachIsTheCellsOwn) {
  for (std::size_t index = 0; index < kNamespaces.size(); ++index) {
    for (Engine engine : {Engine::kNative, Engine::kDocker}) {
      CellPlan plan = PlanFor(engine);
      const Attestation right = MatchingAttestation(plan, engine);
      // A rootful engine's cell may be in the user namespace of the host, but it says which.
      bool may_share = kNamespaces[index] == "user" && engine == Engine::kDocker;
      if (kNamespaces[index] == "time" && engine == Engine::kDocker) continue;
      std::string field = Text("namespace.", kNamespaces[index]);
      auto found_with = [&](auto change) {
        Attestation seen = right;
        change(seen);
        std::vector<Mismatch> found = Compare(plan, engine, seen);
        EXPECT_LE(found.size(), 1U) << DescribeAll(found);
        if (!found.empty()) {
          EXPECT_EQ(found[0].field, field);
        }
        return found.empty() ? std::string() : found[0].found;
      };
      EXPECT_EQ(found_with(
                    [&](Seen s) { s.inside.namespaces[index] = s.outside.host_namespaces[index]; }),
                may_share ? "" : "shared with the host")
          << field;
      EXPECT_EQ(found_with([&](Seen s) { s.inside.namespaces[index] = {}; }), "not seen inside");
      EXPECT_EQ(found_with([&](Seen s) { s.outside.host_namespaces[index] = {}; }),
                may_share ? "" : "the host's own not seen");
    }
  }
}

TEST(CompareNamespacesTest, OneForTimeIsWantedOfANativeCellWhereTheKernelHasIt) {
  constexpr std::size_t kTime = 7;
  ASSERT_EQ(kNamespaces[kTime], "time");
  for (Engine engine : {Engine::kNative, Engine::kDocker}) {
    CellPlan plan = PlanFor(engine);
    Attestation seen = MatchingAttestation(plan, engine);
    seen.inside.namespaces[kTime] = seen.outside.host_namespaces[kTime];
    EXPECT_EQ(Compare(plan, engine, seen).size(), engine == Engine::kNative ? 1U : 0U);
    seen.inside.namespaces[kTime] = {};
    seen.outside.host_namespaces[kTime] = {};
    EXPECT_EQ(Compare(plan, engine, seen).size(), 0U);
  }
}

TEST(CompareNamespacesTest, TheMachinesOwnIsKnownToAnObserverThatHasOthers) {
  CellPlan plan = PlanFor(Engine::kDocker);
  const std::map<std::string_view, uint64_t> initial = {
      {"ipc", 0xEFFFFFFF}, {"uts", 0xEFFFFFFE}, {"pid", 0xEFFFFFFC}, {"cgroup", 0xEFFFFFFB}};
  for (std::size_t index = 0; index < kNamespaces.size(); ++index) {
    auto inode = initial.find(kNamespaces[index]);
    if (inode == initial.end()) continue;
    Attestation seen = MatchingAttestation(plan, Engine::kDocker);
    seen.inside.namespaces[index].inode = inode->second;
    std::vector<Mismatch> found = Compare(plan, Engine::kDocker, seen);
    ASSERT_EQ(found.size(), 1U) << DescribeAll(found);
    EXPECT_EQ(found[0].field, Text("namespace.", kNamespaces[index]));
  }
}

// What the host has in a namespace that is its own is not listed beside the sharing.
TEST(CompareNamespacesTest, WhatOthersHaveInThemIsAMismatchOnceTheyAreNotTheHosts) {
  CellPlan plan = PlanFor(Engine::kDocker);
  Attestation seen = MatchingAttestation(plan, Engine::kDocker);
  seen.inside.sockets = {{"tcp", 12}, {"unix", 0}};
  seen.inside.ipc_objects = {"shm"};
  std::vector<Mismatch> found = Compare(plan, Engine::kDocker, seen);
  ASSERT_EQ(found.size(), 3U) << DescribeAll(found);
  EXPECT_EQ(found[0].field, "socket:tcp");
  EXPECT_EQ(found[1].field, "socket:unix");
  EXPECT_EQ(found[2].field, "ipc:shm");
  seen.inside.namespaces[0] = seen.outside.host_namespaces[0];
  seen.inside.namespaces[1] = seen.outside.host_namespaces[1];
  found = Compare(plan, Engine::kDocker, seen);
  ASSERT_EQ(found.size(), 2U) << DescribeAll(found);
  EXPECT_EQ(found[0].field, "namespace.net");
  EXPECT_EQ(found[1].field, "namespace.ipc");
}

// Every row the witness has to show, one by one: missing, or with another outcome.
TEST(CompareWitnessTest, EachRowIsRequiredAndItsOutcomeToo) {
  CellPlan plan = PlanFor(Engine::kNative);
  for (std::size_t index = 0; index < DeniedCallRules().size(); ++index) {
    std::string field = Text("denied:", DeniedCallRules()[index].name);
    Attestation seen = MatchingAttestation(plan, Engine::kNative);
    auto row = seen.inside.denied_calls.begin() + static_cast<std::ptrdiff_t>(index);
    row->result = 0;
    std::vector<Mismatch> succeeded = Compare(plan, Engine::kNative, seen);
    ASSERT_EQ(succeeded.size(), 1U) << DescribeAll(succeeded);
    EXPECT_EQ(succeeded[0].field, field);
    EXPECT_EQ(succeeded[0].found, "it succeeded");
    row->result = E2BIG;
    EXPECT_EQ(Compare(plan, Engine::kNative, seen).size(), 1U) << field;
    seen.inside.denied_calls.erase(row);
    std::vector<Mismatch> missing = Compare(plan, Engine::kNative, seen);
    ASSERT_EQ(missing.size(), 1U) << DescribeAll(missing);
    EXPECT_EQ(missing[0].found, "not tried");
  }
}

TEST(CompareWitnessTest, RowsOfLandlockAreNotAskedOfAKernelWithoutIt) {
  CellPlan plan = PlanFor(Engine::kNative);
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  seen.inside.landlock_abi = 0;
  seen.inside.landlock_applied = false;
  std::erase_if(seen.inside.denied_calls, [](const DeniedCall& call) {
    return call.name == "write /proc/self/comm" || call.name == "signal init";
  });
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
}

TEST(CompareLimitsTest, TheRoundingOfTheKernelIsNoDifference) {
  CellPlan plan = PlanFor(Engine::kNative);
  plan.limits.memory_bytes += 100;
  plan.limits.cpu_millis = 333;
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  for (LimitsSeen* limits : {&seen.inside.limits, &seen.outside.limits}) {
    limits->memory_bytes = *limits->memory_bytes - 100;
    limits->memory_and_swap_bytes = limits->memory_bytes;
    limits->cpu_quota_us = 3330;  // of 10 ms: 3330 exactly
    limits->cpu_period_us = 10'000;
  }
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  seen.inside.limits.cpu_period_us = 100'001;  // 33300.333 us: rounded down or up
  seen.inside.limits.cpu_quota_us = 33'300;
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  seen.inside.limits.cpu_quota_us = 33'301;
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  seen.inside.limits.cpu_quota_us = 33'302;
  EXPECT_EQ(Compare(plan, Engine::kNative, seen).size(), 1U);
}

TEST(CompareLimitsTest, ATighterSurroundingIsFineWhenTheCellsOwnLimitIsRight) {
  CellPlan plan = PlanFor(Engine::kNative);
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  *seen.outside.limits.memory_bytes /= 2;
  *seen.outside.limits.memory_and_swap_bytes /= 2;
  *seen.outside.limits.pids /= 2;
  *seen.outside.limits.cpu_quota_us /= 2;
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
}

TEST(CompareLimitsTest, FilesThatAreMissingInsideNeedAnExactOutside) {
  CellPlan plan = PlanFor(Engine::kNative);
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  seen.inside.limits = {};
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  --*seen.outside.limits.pids;
  EXPECT_EQ(Compare(plan, Engine::kNative, seen).size(), 1U);
}

TEST(CompareNetworkTest, WithoutProviderThereIsNoListener) {
  CellPlan plan = PlanFor(Engine::kNative);
  plan.network = NetworkMode::kNone;
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  seen.inside.listener_port = 1;
  EXPECT_EQ(Compare(plan, Engine::kNative, seen).size(), 1U);
}

// A bridge is allowed exactly where it was asked for; lo, the listener and a network namespace of
// the cell's own are wanted there too.
TEST(CompareNetworkTest, OtherInterfacesThanLoAreAllowedInAnOpenNetworkOnly) {
  CellPlan plan = PlanFor(Engine::kDocker);
  auto differences = [&](auto change) {
    Attestation seen = MatchingAttestation(plan, Engine::kDocker);
    change(seen);
    std::string fields;
    for (const Mismatch& mismatch : Compare(plan, Engine::kDocker, seen))
      fields += mismatch.field + " ";
    return fields;
  };
  auto bridge = [](Attestation& seen) {
    seen.inside.interfaces.push_back({"eth0", IFF_UP});
    seen.inside.routes += "eth0\t00000000\t010011AC\t0003\n";
  };
  EXPECT_EQ(differences(bridge), "interface:eth0 routes ");
  plan.network = NetworkMode::kOpen;
  ASSERT_TRUE(CheckPlan(plan).ok());
  EXPECT_EQ(differences(bridge), "");
  EXPECT_EQ(differences([&](Attestation& seen) {
              bridge(seen);
              seen.inside.listener_port = 0;
            }),
            "listener ");
  EXPECT_EQ(differences([&](Attestation& seen) {
              bridge(seen);
              seen.inside.interfaces[0].flags = IFF_LOOPBACK;
            }),
            "interface:lo ");
  EXPECT_EQ(differences([&](Attestation& seen) {
              bridge(seen);
              static_assert(kNamespaces[0] == "net");
              seen.inside.namespaces[0] = seen.outside.host_namespaces[0];
            }),
            "namespace.net ");
}

TEST(CompareNetworkTest, AListenerForTunnelsIsThereExactlyWhereItIsPlanned) {
  CellPlan plan = PlanFor(Engine::kNative);
  plan.tunnels = true;
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  EXPECT_TRUE(Compare(plan, Engine::kNative, seen).empty());
  seen.inside.tunnel_port = 0;
  std::vector<Mismatch> found = Compare(plan, Engine::kNative, seen);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "tunnel listener");
}

TEST(DescribeTest, ItIsOneLineWithoutControlBytes) {
  EXPECT_EQ(Describe({"limits.memory", "67108864", "unlimited", true}),
            "limits.memory: planned 67108864, found unlimited");
  EXPECT_EQ(Describe({"mount:/a\nb", "x", "\x1b[2J", false}),
            "mount:/a\\nb: planned x, found \\x1b[2J");
}

TEST(CompareTest, CapabilitiesAreNamed) {
  CellPlan plan = SamplePlan();
  Attestation seen = MatchingAttestation(plan, Engine::kNative);
  seen.inside.capabilities[2] = (1ULL << 12U) | (1ULL << 21U) | (1ULL << 63U);
  std::vector<Mismatch> found = Compare(plan, Engine::kNative, seen);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].found, "cap_net_admin cap_sys_admin 63");
}

}  // namespace
}  // namespace taskcell::cell
