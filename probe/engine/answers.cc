#include "probe/engine/answers.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxQuotedBytes = 300;
constexpr std::size_t kMaxIdBytes = 128;

Error Malformed(const char* what, std::string_view why) {
  return Error(Kind::kViolation, Text("the engine's answer about ", what, " ", why))
      .Coded("docker_unreachable");
}

// The one place that meets the JSON library's parser: no exception leaves it.
Result<Json> Parse(std::string_view body, const char* what, Json::value_t wanted) {
  Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Malformed(what, "is not JSON");
  if (json.type() != wanted) return Malformed(what, "has another shape than asked for");
  return json;
}

Result<Json> ParseObject(std::string_view body, const char* what) {
  return Parse(body, what, Json::value_t::object);
}

const Json* Find(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  auto at = json.find(key);
  return at == json.end() ? nullptr : &*at;
}

std::string StringAt(const Json& json, const char* key) {
  const Json* at = Find(json, key);
  return at != nullptr && at->is_string() ? at->get_ref<const std::string&>() : std::string();
}

bool BoolAt(const Json& json, const char* key) {
  const Json* at = Find(json, key);
  return at != nullptr && at->is_boolean() && at->get<bool>();
}

int32_t IntAt(const Json& json, const char* key) {
  const Json* at = Find(json, key);
  if (at == nullptr || !at->is_number_integer()) return 0;
  auto value = at->get<int64_t>();
  bool fits =
      value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  return fits ? static_cast<int32_t>(value) : 0;
}

uint64_t CountAt(const Json& json, const char* key) {
  const Json* at = Find(json, key);
  return at != nullptr && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
}

std::vector<std::string> StringsAt(const Json& json, const char* key) {
  std::vector<std::string> out;
  const Json* at = Find(json, key);
  if (at == nullptr || !at->is_array()) return out;
  for (const Json& item : *at)
    if (item.is_string()) out.push_back(item.get_ref<const std::string&>());
  return out;
}

std::vector<std::string> KeysAt(const Json& json, const char* key) {
  std::vector<std::string> out;
  const Json* at = Find(json, key);
  if (at == nullptr || !at->is_object()) return out;
  for (auto item = at->begin(); item != at->end(); ++item) out.push_back(item.key());
  return out;
}

// Ids go into request paths.
bool IsId(std::string_view id) {
  auto ordinary = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':';
  };
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), ordinary);
}

Result<std::string> IdAt(const Json& json, const char* what) {
  std::string id = StringAt(json, "Id");
  if (!IsId(id)) return Malformed(what, "has no valid Id");
  return id;
}

// A limit as engines write it: 0, a negative number and null are none.
std::optional<uint64_t> LimitAt(const Json& json, const char* key) {
  const Json* at = Find(json, key);
  if (at == nullptr) return std::nullopt;
  if (at->is_null()) return kReportedUnlimited;
  if (at->is_number_unsigned()) {
    auto value = at->get<uint64_t>();
    return value == 0 ? kReportedUnlimited : value;
  }
  return at->is_number_integer() ? std::optional(kReportedUnlimited) : std::nullopt;
}

// Either way of asking for processor time.
std::optional<uint64_t> CpuMillisOf(const Json& host) {
  constexpr uint64_t kNanosPerMilli = 1'000'000;
  std::optional<uint64_t> nanos = LimitAt(host, "NanoCpus");
  if (nanos && *nanos != kReportedUnlimited) return *nanos / kNanosPerMilli;
  std::optional<uint64_t> quota = LimitAt(host, "CpuQuota");
  std::optional<uint64_t> period = LimitAt(host, "CpuPeriod");
  bool limited = quota && *quota != kReportedUnlimited;
  if (!limited) return nanos ? nanos : quota;
  constexpr uint64_t kDefaultPeriodUs = 100'000;
  constexpr uint64_t kMostUs = uint64_t{1} << 40U;
  uint64_t period_us = period && *period != kReportedUnlimited ? *period : kDefaultPeriodUs;
  return *quota < kMostUs ? *quota * 1000 / period_us : kReportedUnlimited;
}

// The size in the mount options an engine echoes; only whole bytes, as they were asked for.
std::optional<uint64_t> TmpfsSize(const Json& options) {
  if (!options.is_string()) return std::nullopt;
  constexpr std::string_view kSize = "size=";
  for (std::string_view option : Split(options.get_ref<const std::string&>(), ','))
    if (option.starts_with(kSize)) return ParseUnsigned(option.substr(kSize.size()));
  return std::nullopt;
}

const Json& MemberOrNull(const Json& json, const char* key) {
  static const Json kNull;
  const Json* at = Find(json, key);
  return at == nullptr ? kNull : *at;
}

}  // namespace

Result<EngineVersion> ParseVersion(std::string_view body) {
  Json json = TRY(ParseObject(body, "its version"));
  EngineVersion version;
  version.engine = Printable(StringAt(json, "Version"));
  version.maximum = TRY(ParseApiVersion(StringAt(json, "ApiVersion")).With("ApiVersion"));
  std::string minimum = StringAt(json, "MinAPIVersion");  // old engines leave it out
  version.minimum =
      minimum.empty() ? ApiVersion{0} : TRY(ParseApiVersion(minimum).With("MinAPIVersion"));
  return version;
}

Result<EngineInfo> ParseInfo(std::string_view body) {
  Json json = TRY(ParseObject(body, "itself"));
  EngineInfo info;
  info.id = Printable(StringAt(json, "ID"));
  info.server_version = Printable(StringAt(json, "ServerVersion"));
  info.cgroup_version = Printable(StringAt(json, "CgroupVersion"));
  info.cgroup_driver = Printable(StringAt(json, "CgroupDriver"));
  info.security_options = StringsAt(json, "SecurityOptions");
  info.warnings = StringsAt(json, "Warnings");
  info.rootless = BoolAt(json, "Rootless");
  info.podman = !StringAt(json, "BuildahVersion").empty();
  for (const std::string& option : info.security_options) {
    std::string_view name = std::string_view(option).substr(0, option.find(','));
    if (name == "name=rootless" || name == "rootless") info.rootless = true;
    if (name == "name=userns" || name == "userns") info.user_namespaces = true;
  }
  return info;
}

Result<ImageAnswer> ParseImage(std::string_view body) {
  Json json = TRY(ParseObject(body, "an image"));
  ImageAnswer image;
  image.id = TRY(IdAt(json, "an image"));
  image.architecture = Printable(StringAt(json, "Architecture"));
  const Json& config = MemberOrNull(json, "Config");
  image.user = Printable(StringAt(config, "User"));
  image.volumes = KeysAt(config, "Volumes");
  for (const std::string& entry : StringsAt(config, "Env")) {
    std::string name = entry.substr(0, entry.find('='));
    if (!name.empty()) image.environment_names.push_back(name);
  }
  for (const std::string& digest : StringsAt(json, "RepoDigests"))
    image.digests.push_back(Printable(digest));
  return image;
}

Result<PullLine> ParsePullLine(std::string_view line) {
  Json json = TRY(ParseObject(line, "the progress of a pull"));
  auto text_at = [](const Json& from, const char* name) {
    return Printable(std::string_view(StringAt(from, name)).substr(0, kMaxQuotedBytes));
  };
  PullLine out;
  out.layer = text_at(json, "id");
  out.status = text_at(json, "status");
  const Json& progress = MemberOrNull(json, "progressDetail");
  out.bytes = CountAt(progress, "current");
  out.total_bytes = CountAt(progress, "total");
  out.error = text_at(json, "error");
  if (out.error.empty()) out.error = text_at(MemberOrNull(json, "errorDetail"), "message");
  return out;
}

Result<CreateAnswer> ParseCreate(std::string_view body) {
  Json json = TRY(ParseObject(body, "a new container"));
  CreateAnswer answer;
  answer.id = TRY(IdAt(json, "a new container"));
  for (const std::string& warning : StringsAt(json, "Warnings"))
    answer.warnings.push_back(Printable(warning).substr(0, kMaxQuotedBytes));
  return answer;
}

Result<ContainerAnswer> ParseContainer(std::string_view body) {
  Json json = TRY(ParseObject(body, "a container"));
  ContainerAnswer container;
  container.id = TRY(IdAt(json, "a container"));
  const Json& state = MemberOrNull(json, "State");
  container.status = Printable(StringAt(state, "Status"));
  container.running = BoolAt(state, "Running");
  container.pid = IntAt(state, "Pid");
  container.exit_code = IntAt(state, "ExitCode");
  container.oom_killed = BoolAt(state, "OOMKilled");
  container.error = Printable(StringAt(state, "Error")).substr(0, kMaxQuotedBytes);
  container.run_label = StringAt(MemberOrNull(MemberOrNull(json, "Config"), "Labels"),
                                 "com.duduclaw.task-sandbox.run");
  return container;
}

Result<ReportedLimits> ParseReportedLimits(std::string_view body) {
  Json json = TRY(ParseObject(body, "a container"));
  const Json& host = MemberOrNull(json, "HostConfig");
  if (!host.is_object()) return Malformed("a container", "has no HostConfig");
  ReportedLimits limits;
  limits.memory_bytes = LimitAt(host, "Memory");
  limits.memory_and_swap_bytes = LimitAt(host, "MemorySwap");
  limits.pids = LimitAt(host, "PidsLimit");
  limits.cpu_millis = CpuMillisOf(host);
  const Json& ulimits = MemberOrNull(host, "Ulimits");
  for (const Json& ulimit : ulimits) {
    std::string name = Lower(StringAt(ulimit, "Name"));  // Podman says RLIMIT_NOFILE
    if (name == "nofile" || name == "rlimit_nofile") limits.nofile = LimitAt(ulimit, "Hard");
  }
  const Json& tmpfs = MemberOrNull(host, "Tmpfs");
  if (!tmpfs.is_object()) return limits;
  for (auto item = tmpfs.begin(); item != tmpfs.end(); ++item) {
    std::optional<uint64_t> size = TmpfsSize(item.value());
    if (size) limits.tmpfs_bytes.emplace(item.key(), *size);
  }
  return limits;
}

Result<std::vector<ListedImage>> ParseImageList(std::string_view body) {
  Json json = TRY(Parse(body, "its images", Json::value_t::array));
  std::vector<ListedImage> out;
  for (const Json& item : json) {
    ListedImage listed;
    listed.id = TRY(IdAt(item, "its images"));
    listed.names = StringsAt(item, "RepoTags");
    const Json* created = Find(item, "Created");
    if (created != nullptr && created->is_number_integer())
      listed.created_unix_s = created->get<int64_t>();
    out.push_back(std::move(listed));
  }
  return out;
}

Result<std::vector<ListedContainer>> ParseList(std::string_view body) {
  Json json = TRY(Parse(body, "its containers", Json::value_t::array));
  std::vector<ListedContainer> out;
  for (const Json& item : json) {
    ListedContainer listed;
    listed.id = TRY(IdAt(item, "its containers"));
    listed.state = StringAt(item, "State");
    const Json& labels = MemberOrNull(item, "Labels");
    listed.run_label = StringAt(labels, "com.duduclaw.task-sandbox.run");
    listed.deadline_label = StringAt(labels, "com.duduclaw.task-sandbox.deadline");
    out.push_back(std::move(listed));
  }
  return out;
}

std::string ErrorMessage(std::string_view body) {
  Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  std::string message = StringAt(json, "message");
  if (message.empty()) message = StringAt(json, "cause");
  if (message.empty()) message = body.substr(0, kMaxQuotedBytes);
  message = Printable(Trim(std::string_view(message).substr(0, kMaxQuotedBytes)));
  return message.empty() ? "no reason given" : message.substr(0, kMaxQuotedBytes);
}

}  // namespace taskcell::probe
