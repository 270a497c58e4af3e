#include "launcher/init/options.h"

#include <algorithm>
#include <array>
#include <climits>
#include <optional>

#include "launcher/base/text.h"

namespace taskcell::init {
namespace {

constexpr std::array<std::string_view, 9> kLimitNames = {"memory",  "memsw",     "swap",
                                                         "pids",    "cpu_quota", "cpu_period",
                                                         "cpu_max", "cpu_set",   "io_weight"};
constexpr int kFirstFreeDescriptor = 3;  // 0, 1 and 2 are the job's

Error Usage(std::string_view argument, std::string_view reason) {
  return Error(Kind::kUsage, Text("argument '", Printable(argument), "': ", reason));
}

Result<int> ParseDescriptor(std::string_view argument, std::string_view text) {
  std::optional<uint64_t> number = ParseUnsigned(text);
  if (!number || *number < kFirstFreeDescriptor || *number > INT_MAX) {
    return Usage(argument, "not the number of a descriptor from 3 on");
  }
  return static_cast<int>(*number);
}

Result<uint64_t> ParsePositive(std::string_view argument, std::string_view text) {
  std::optional<uint64_t> number = ParseUnsigned(text);
  if (!number || *number == 0) return Usage(argument, "not a number above 0");
  return *number;
}

// The value of "--name=value", or nothing when `argument` is another option.
std::optional<std::string_view> ValueOf(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name)) return std::nullopt;
  argument.remove_prefix(name.size());
  if (!argument.starts_with('=')) return std::nullopt;
  return argument.substr(1);
}

Status ParseLimit(std::string_view argument, std::string_view value, Options& options) {
  std::vector<std::string_view> parts = Split(value, ':');
  if (parts.size() != 2 ||
      std::find(kLimitNames.begin(), kLimitNames.end(), parts[0]) == kLimitNames.end()) {
    return Usage(argument, "not NAME:FD with the name of a limit");
  }
  int fd = TRY(ParseDescriptor(argument, parts[1]));
  options.limits.push_back({std::string(parts[0]), fd});
  return Ok();
}

Status ParseOne(std::string_view argument, Options& options) {
  if (argument == "--listen") {
    options.listen = true;
    return Ok();
  }
  if (argument == "--tunnels") {
    options.tunnels = true;
    return Ok();
  }
  if (argument == "--inherit") {
    options.stdio = cell::JobStdio::kInherit;
    return Ok();
  }
  if (argument == "--terminal") {
    options.stdio = cell::JobStdio::kTerminal;
    return Ok();
  }
  if (auto value = ValueOf(argument, "--gate-fd")) {
    options.gate_fd = TRY(ParseDescriptor(argument, *value));
    return Ok();
  }
  if (auto value = ValueOf(argument, "--seccomp")) {
    options.filter_fd = TRY(ParseDescriptor(argument, *value));
    return Ok();
  }
  if (auto value = ValueOf(argument, "--gate-path")) {
    if (!value->starts_with('/')) return Usage(argument, "not an absolute path");
    options.gate_path = *value;
    return Ok();
  }
  if (auto value = ValueOf(argument, "--nofile")) {
    options.nofile = TRY(ParsePositive(argument, *value));
    return Ok();
  }
  if (auto value = ValueOf(argument, "--file-size")) {
    options.file_bytes = TRY(ParsePositive(argument, *value));
    return Ok();
  }
  if (auto value = ValueOf(argument, "--limit")) return ParseLimit(argument, *value, options);
  return Usage(argument, "unknown");
}

}  // namespace

Result<Options> ParseOptions(std::span<const std::string_view> arguments) {
  Options options;
  for (std::string_view argument : arguments) TRY(ParseOne(argument, options));
  if ((options.gate_fd >= 0) == !options.gate_path.empty()) {
    return Error(Kind::kUsage, "exactly one of --gate-fd and --gate-path is required");
  }
  if (options.tunnels && !options.listen) {
    return Error(Kind::kUsage, "--tunnels goes with --listen only");
  }
  return options;
}

}  // namespace taskcell::init
