#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace taskcell::probe {

// What the command line of `taskcell-probe` (and `taskcell-probe host`) says.
struct HostOptions {
  std::string root;  // a directory that holds a host's files; "" for this host
  std::string from;  // an archive of `taskcell-probe collect`; "" for this host
  std::optional<uint32_t> uid;
  std::string user;
  std::string subuid;
  std::string subgid;
  std::string explain;  // an id to explain instead of looking at anything
  bool json = false;
  bool quiet = false;
};

inline constexpr int kExitReady = 0;
inline constexpr int kExitNotReady = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnknown = 3;

// Looks at the host, prints the report and returns the exit status. Changes nothing.
int HostCommand(const HostOptions& options);

}  // namespace taskcell::probe
