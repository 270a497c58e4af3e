#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/diagnosis.h"
#include "tests/support/memory_host.h"

namespace taskcell::cgroup {

inline constexpr uint32_t kUser = 1500;
inline const std::string kRoot = "/sys/fs/cgroup";
inline const std::string kSlice = kRoot + "/user.slice/user-1500.slice";
inline const std::string kManager = kSlice + "/user@1500.service";
inline constexpr std::string_view kAllOn = "cpu memory pids";

inline Diagnosis Ask(test::MemoryHost& host, Controller controller) {
  int before = host.reads();
  Diagnosis diagnosis = Diagnose(ReadSituation(host, {}), controller);
  EXPECT_LT(host.reads() - before, 400);
  return diagnosis;
}

inline std::string States(test::MemoryHost& host) {
  std::string states;
  for (Controller each : kControllers)
    states += Text(states.empty() ? "" : " ", Name(Ask(host, each).state));
  return states;
}

#define EXPECT_DIAGNOSIS(diagnosis, state_name, who_name)                 \
  do {                                                                    \
    EXPECT_EQ(Name((diagnosis).state), state_name) << (diagnosis).reason; \
    EXPECT_EQ(Name((diagnosis).who), who_name) << (diagnosis).fix;        \
  } while (false)

}  // namespace taskcell::cgroup
