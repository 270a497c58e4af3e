#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "probe/engine/api_version.h"

namespace taskcell::probe {

// What an engine says. Every parser takes the whole body and refuses (kViolation) what is not JSON
// of the shape asked; unknown members are ignored, null stands for an empty list. Nothing here
// decides anything about a cell: only the attestation does.

struct EngineVersion {
  std::string engine;  // "20.10.24"
  ApiVersion minimum;
  ApiVersion maximum;
};
Result<EngineVersion> ParseVersion(std::string_view body);

struct EngineInfo {
  std::string id;  // of this one daemon's store; Podman has none
  std::string server_version;
  std::string cgroup_version;
  std::string cgroup_driver;
  bool rootless = false;  // name=rootless in SecurityOptions, or Podman's own Rootless
  bool user_namespaces = false;
  bool podman = false;  // it names the Buildah it is built with, which no Docker does
  std::vector<std::string> security_options;
  std::vector<std::string> warnings;
};
Result<EngineInfo> ParseInfo(std::string_view body);

struct ImageAnswer {
  std::string id;
  std::string architecture;
  std::string user;
  std::vector<std::string> volumes;
  std::vector<std::string> environment_names;
  std::vector<std::string> digests;  // "name@sha256:...", one for each registry it came from
};
Result<ImageAnswer> ParseImage(std::string_view body);

// One line of what an engine tells while it pulls an image.
struct PullLine {
  std::string layer;   // empty: of the whole image
  std::string status;  // "Downloading", "Pull complete", ...
  uint64_t bytes = 0;  // of the layer so far, and all of them; 0: it says nothing of that
  uint64_t total_bytes = 0;
  std::string error;  // why it gave up; empty: it has not
};
Result<PullLine> ParsePullLine(std::string_view line);

struct CreateAnswer {
  std::string id;
  std::vector<std::string> warnings;
};
Result<CreateAnswer> ParseCreate(std::string_view body);

struct ContainerAnswer {
  std::string id;
  std::string status;  // "created", "running", "removing", "exited", "dead", ...
  bool running = false;
  int32_t pid = 0;  // 0 when it does not run
  int32_t exit_code = 0;
  bool oom_killed = false;
  std::string error;
  std::string run_label;
};
Result<ContainerAnswer> ParseContainer(std::string_view body);

// What an engine says the limits of a container are. kReportedUnlimited: none; nullopt: it says
// nothing that can be read.
inline constexpr uint64_t kReportedUnlimited = ~uint64_t{0};
struct ReportedLimits {
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> memory_and_swap_bytes;
  std::optional<uint64_t> pids;
  std::optional<uint64_t> cpu_millis;
  std::optional<uint64_t> nofile;
  std::map<std::string, uint64_t> tmpfs_bytes;  // by target
};
// From the body of a container's inspection.
Result<ReportedLimits> ParseReportedLimits(std::string_view body);

struct ListedImage {
  std::string id;
  int64_t created_unix_s = 0;
  std::vector<std::string> names;
};
Result<std::vector<ListedImage>> ParseImageList(std::string_view body);

struct ListedContainer {
  std::string id;
  std::string state;
  std::string run_label;
  std::string deadline_label;
};
Result<std::vector<ListedContainer>> ParseList(std::string_view body);

// Returns the "message" (or Podman's "cause") of an error answer on one printable line of at most
// 300 bytes; the raw start of the body when it is no JSON.
std::string ErrorMessage(std::string_view body);

}  // namespace taskcell::probe
