#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

// Opens the mount point of a hierarchy and makes sure that it is that hierarchy (its device number)
// and not something mounted over it.
Result<UniqueFd> OpenMount(const Hierarchy& hierarchy);

// Opens the cgroup directory `below` ("" is the directory itself) without following a link or
// leaving the mount.
Result<UniqueFd> OpenCgroup(int directory_fd, const std::string& below);

inline constexpr std::size_t kMaxControlFileBytes = 1U << 20U;

// Reads one control file to its end, white space at its ends taken off.
Result<std::string> ReadControl(int directory_fd, const std::string& name);

inline constexpr std::size_t kMaxRecordBytes = 4096;

// Opens a control file that the kernel writes as one record of at most kMaxRecordBytes: a limit or
// a few counters, never a list of processes. `path` may lead through cgroups below the directory.
// nullopt when there is no such file.
Result<std::optional<UniqueFd>> OpenRecord(int directory_fd, const std::string& path);

// What the record is now, white space at its ends taken off. One read is enough for a record, and a
// start reads dozens of them.
Result<std::string> ReadRecord(int fd);

// The same of a file that is needed once; nullopt when there is no such file.
Result<std::optional<std::string>> ReadRecord(int directory_fd, const std::string& path);

// The number after `key` in a file of "key number" lines (memory.events, cpu.stat); nullopt when
// the key is not there. Pure.
std::optional<uint64_t> ValueOf(std::string_view text, std::string_view key);

}  // namespace taskcell::cgroup
