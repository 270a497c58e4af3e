#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::native {

// The steps a cell's first process goes through before it becomes taskcell-init, in order. Each has
// a name that stands in every message about it.
enum class Stage : uint8_t {
  kIdMaps,       // "id maps"
  kCgroup,       // "cgroup"
  kPropagation,  // "mount propagation"
  kSources,      // "mount sources"
  kIds,          // "ids"
  kRoot,         // "root"
  kProc,         // "proc"
  kSysctls,      // "sysctls"
  kDevices,      // "devices"
  kMounts,       // "mounts"
  kNetwork,      // "network"
  kHostname,     // "hostname"
  kPivot,        // "pivot"
  kPrivileges,   // "privileges"
  kAccess,       // "access"
  kDescriptors,  // "descriptors"
  kExec,         // "exec"
};
std::string_view Name(Stage stage);

// What the child tells its parent, one record over a pipe. End of the pipe without a failure means
// that taskcell-init runs.
struct ChildReport {
  enum class Type : uint8_t {
    kFailure,       // the stage failed; the child is gone
    kProcIsSubset,  // only the processes part of /proc could be mounted (subset=pid)
    kKeyringStays,  // the caller's session keyring could not be left
    kReady,         // trial only: every stage before exec went well
  };
  Type type = Type::kFailure;
  Stage stage = Stage::kIdMaps;
  uint8_t kind = 0;  // taskcell::Kind
  int32_t err = 0;
  std::array<char, 496> text = {};  // cut off, never unterminated
};
static_assert(sizeof(ChildReport) <= 512, "one report is one atomic write: PIPE_BUF at the least");

// Makes the report of a failure.
ChildReport ReportFailure(Stage stage, const Error& error);

// The Error a failure report stands for: "cell set-up, stage 'mounts': <text>". Coded
// source_unreadable where the job may not use what the plan shows it.
Error ErrorOf(const ChildReport& report);

}  // namespace taskcell::native
