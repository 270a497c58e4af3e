#include "gateway/config/taskcell_settings.h"

#include <optional>

#include "gateway/config/table_reader.h"
#include "gateway/config/token_endpoint.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kInvalidConfig = "invalid_config";

Status ReadEngine(const TableReader& reader, TaskcellSettings& settings) {
  std::string engine = "auto";
  TRY(reader.String("engine", engine));
  if (engine == "auto") {
    settings.engine = EngineChoice::kAuto;
  } else if (engine == "docker") {
    settings.engine = EngineChoice::kDocker;
  } else if (engine == "native") {
    settings.engine = EngineChoice::kNative;
  } else if (engine == "podman") {
    settings.engine = EngineChoice::kPodman;
  } else {
    return reader.Complain("engine", "must be \"auto\", \"docker\", \"podman\" or \"native\"");
  }
  return Ok();
}

Status ReadEngineSocket(const TableReader& reader, TaskcellSettings& settings) {
  if (reader.Find("engine_socket") == nullptr) return Ok();
  TRY(reader.String("engine_socket", settings.engine_socket));
  std::string_view socket = settings.engine_socket;
  if (!socket.starts_with('/') && !socket.starts_with("unix:/"))
    return reader.Complain("engine_socket", "must be an absolute path or a unix:// URL");
  if (socket.find('\0') != std::string_view::npos)
    return reader.Complain("engine_socket", "must not hold a NUL byte");
  return Ok();
}

// A port is asked for, since the usual one differs from program to program.
bool IsProxyAddress(std::string_view url) {
  bool has_scheme = url.starts_with("http://") || url.starts_with("https://");
  if (!has_scheme) return false;
  std::string_view place = url.substr(url.find("//") + 2);
  std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::optional<uint64_t> port = ParseUnsigned(place.substr(colon + 1));
  if (!port || *port == 0 || *port > 65535) return false;
  std::string_view host = place.substr(0, colon);
  bool is_ipv6 = host.starts_with('[') && host.ends_with(']');
  if (is_ipv6) host = host.substr(1, host.size() - 2);
  const std::string_view allowed = is_ipv6 ? "0123456789abcdefABCDEF:."
                                           : "0123456789abcdefghijklmnopqrstuvwxyz"
                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ-.";
  return !host.empty() && host.find_first_not_of(allowed) == std::string_view::npos;
}

Status ReadUplinkKeys(const TableReader& reader, TaskcellSettings& settings) {
  TRY(reader.String("upstream_proxy", settings.upstream_proxy));
  if (reader.Find("upstream_proxy") != nullptr && !IsProxyAddress(settings.upstream_proxy))
    return reader.Complain("upstream_proxy",
                           "must be http://host:port or https://host:port, without a user name, "
                           "password or path");
  TRY(reader.String("ca_file", settings.ca_file));
  if (reader.Find("ca_file") == nullptr) return Ok();
  if (!settings.ca_file.starts_with('/') || settings.ca_file.find('\0') != std::string::npos)
    return reader.Complain("ca_file", "must be the absolute path of a file");
  return Ok();
}

Status ReadRoot(const TableReader& reader, TaskcellSettings& settings) {
  TRY(reader.String("root", settings.root));
  if (settings.root == "host") return Ok();
  if (!settings.root.starts_with('/') || settings.root.find('\0') != std::string::npos)
    return reader.Complain("root", "must be \"host\" or the absolute path of a directory");
  return Ok();
}

Status ReadEgress(const TableReader& reader, TaskcellSettings& settings) {
  std::string value = "provider";
  TRY(reader.String("egress", value));
  if (value != "provider" && value != "open")
    return reader.Complain("egress", "must be \"provider\" or \"open\"");
  settings.open_egress = value == "open";
  return Ok();
}

// What only one kind of engine has is refused with another, not ignored.
Status CheckEngineFits(const ConfigValue& config, const TableReader& reader,
                       const TaskcellSettings& settings) {
  if (settings.engine != EngineChoice::kNative) {
    if (settings.root != "host") return reader.Complain("root", "is for engine = \"native\" only");
    if (settings.cpu_may_be_missing)
      return reader.Complain("allow_missing", "is for engine = \"native\" only");
    return Ok();
  }
  if (reader.Find("engine_socket") != nullptr)
    return reader.Complain("engine_socket", "has no effect with engine = \"native\"; remove it");
  if (settings.open_egress)
    return reader.Complain("egress",
                           "= \"open\" is an engine's bridge, which a cell of engine = \"native\" "
                           "has not, and the host's own network is never given; use \"provider\", "
                           "or choose another engine");
  TableReader sandbox(TRY(FindTable(config, {"container", "sandbox"})), "container.sandbox");
  if (sandbox.Find("image") != nullptr)
    return sandbox.Complain("image",
                            "has no effect with [taskcell] engine = \"native\", whose cells have "
                            "no image; remove it, or choose another engine");
  return Ok();
}

Status ReadUnsafeSubtree(const TableReader& reader, TaskcellSettings& settings) {
  std::string value = "prune";
  TRY(reader.String("unsafe_subtree", value));
  if (value != "prune" && value != "skip")
    return reader.Complain("unsafe_subtree", "must be \"prune\" or \"skip\"");
  settings.unsafe_subtree = value == "skip" ? mounts::Subtree::kSkip : mounts::Subtree::kPrune;
  return Ok();
}

Status ReadAllowMissing(const TableReader& reader, TaskcellSettings& settings) {
  std::vector<std::string> allowed;
  TRY(reader.Strings("allow_missing", allowed));
  for (const std::string& controller : allowed) {
    if (controller != "cpu")
      return reader.Complain("allow_missing",
                             "may name \"cpu\" only: no cell is made without its "
                             "memory and process limits");
    settings.cpu_may_be_missing = true;
  }
  return Ok();
}

Result<TaskcellSettings> Read(const ConfigValue& config) {
  TaskcellSettings settings;
  TableReader reader(TRY(FindTable(config, {"taskcell"})), "taskcell");
  TRY(reader.CheckKeys({"engine", "engine_socket", "root", "egress", "allow_missing",
                        "unsafe_subtree", "max_concurrent", "upstream_proxy", "ca_file", "oauth",
                        "retention", "prices"}));
  TRY(ReadTokenEndpoints(config));
  TRY(ReadEngine(reader, settings));
  TRY(ReadEngineSocket(reader, settings));
  TRY(ReadRoot(reader, settings));
  TRY(ReadEgress(reader, settings));
  TRY(ReadUplinkKeys(reader, settings));
  TRY(ReadUnsafeSubtree(reader, settings));
  TRY(ReadAllowMissing(reader, settings));
  TRY(reader.Positive("max_concurrent", kMaxMaxConcurrent, settings.max_concurrent));
  settings.prices = TRY(ReadPrices(config));
  settings.retention = TRY(ReadRetention(config));
  TRY(CheckEngineFits(config, reader, settings));
  return settings;
}

}  // namespace

Result<TaskcellSettings> ReadTaskcellSettings(const ConfigValue& config) {
  Result<TaskcellSettings> settings = Read(config);
  if (settings.ok()) return settings;
  return std::move(settings).error().Coded(kInvalidConfig);
}

}  // namespace taskcell::gateway
