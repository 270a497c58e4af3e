#include "probe/facts/reduce.h"

#include <fnmatch.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/cgroup/name.h"
#include "probe/facts/engine_facts.h"
#include "probe/facts/unit_file.h"

namespace taskcell::probe {
namespace {

using Fields = std::vector<std::string_view>;

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Each line as `reduce` gives it; a line for which that is nothing is left out.
template <typename ReduceLine>
std::string Lines(std::string_view text, ReduceLine reduce) {
  std::string reduced;
  for (std::string_view line : Split(text, '\n')) {
    std::optional<std::string> kept = reduce(line);
    if (kept) reduced += Text(*kept, '\n');
  }
  return reduced;
}

std::string AsIs(std::string_view text) { return std::string(text); }

// Without the process's name, which it may have made of anything.
std::string Status(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    std::string_view key = line.substr(0, line.find(':'));
    if (!IsOneOf(key, {"Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp"})) return std::nullopt;
    return std::string(line);
  });
}

// The mounts of cgroups, without their source. A line that is not as proc(5) says stays one.
std::string Mounts(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    if (line.empty()) return std::nullopt;
    Result<std::vector<MountInfoLine>> mount = ParseMountInfo(line);
    if (!mount.ok()) return "?";
    if (!IsOneOf(mount->front().type, {"cgroup", "cgroup2"})) return std::nullopt;
    constexpr std::ptrdiff_t kFixed = 6;
    Fields fields = Split(line, ' ');
    auto dash = std::find(fields.begin() + kFixed, fields.end(), "-");
    std::string kept;
    for (auto field = fields.begin(); field != dash; ++field) kept += Text(*field, ' ');
    return Text(kept, "- ", dash[1], ' ', dash[1], ' ', dash[3]);
  });
}

// Of the kernel's command line only what switches controllers off.
std::string KernelParameters(std::string_view text) {
  std::string kept;
  for (std::string_view word : Words(text)) {
    if (word.starts_with("cgroup_disable=")) kept += Text(kept.empty() ? "" : " ", word);
  }
  return kept + "\n";
}

// A pattern that pipes to a program may hold its arguments.
std::string FirstWord(std::string_view text) {
  Fields words = Words(text);
  return words.empty() ? std::string() : Text(words.front(), '\n');
}

std::string ReleaseName(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    if (!line.starts_with("PRETTY_NAME=")) return std::nullopt;
    return std::string(line);
  });
}

std::optional<std::string> Account(const Fields& fields) {
  if (fields.size() < 3 || !ParseUnsigned(fields[2])) return std::nullopt;
  return Text(fields[0], ":x:", fields[2]);
}

std::string Accounts(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    std::optional<std::string> account = Account(Split(line, ':'));
    if (account) *account += "::::";
    return account;
  });
}

std::string Groups(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    Fields fields = Split(line, ':');
    std::optional<std::string> group = Account(fields);
    if (group && fields.size() == 4 && fields[0] == "docker") *group += Text(':', fields[3]);
    return group;
  });
}

// NAME:FIRST:COUNT; what is no number there, is still none. The lines keep their numbers.
std::string SubordinateIds(std::string_view text) {
  std::string reduced = Lines(text, [](std::string_view line) -> std::optional<std::string> {
    if (line.empty() || line.front() == '#') return std::string();
    std::string kept(line);
    std::size_t name_end = std::min(line.find(':'), line.find(' '));
    if (line.find(':') != line.npos) name_end = line.find(':');
    for (std::size_t at = std::min(name_end, line.size()); at < line.size(); ++at) {
      bool counts = std::string_view("0123456789: \t\r").find(line[at]) != line.npos;
      if (!counts) kept[at] = '?';
    }
    return kept;
  });
  // The last line had no end, or was the empty one behind it.
  reduced.pop_back();
  return reduced;
}

std::string IdBounds(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    Fields words = Words(line);
    bool counts =
        words.size() >= 2 && IsOneOf(words[0], {"UID_MIN", "UID_MAX", "GID_MIN", "GID_MAX"});
    if (!counts) return std::nullopt;
    return Text(words[0], ' ', ParseUnsigned(words[1]) ? words[1] : "?");
  });
}

// Who listens at the sockets of engines.
std::string UnixListeners(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    Fields words = Words(line);
    if (words.size() != 8) return std::nullopt;
    std::string_view path = words[7];
    bool engine = path.ends_with("/docker.sock") || path.ends_with("/podman/podman.sock");
    bool usual = path.starts_with("/run/") || path.starts_with("/var/run/");
    if (!engine || !usual) return std::nullopt;
    return Text("0: 0 0 ", words[3], " 0 0 0 ", path);
  });
}

std::string TcpListeners(std::string_view text) {
  return Lines(text, [](std::string_view line) -> std::optional<std::string> {
    if (DockerListeners(line).empty()) return std::nullopt;
    return Text("0: ", Words(line)[1], " 0 0A");
  });
}

constexpr std::string_view kUnitKeys[] = {
    "Delegate",        "RestrictNamespaces", "RestrictSUIDSGID",     "ProtectControlGroups",
    "NoNewPrivileges", "PrivateUsers",       "ProtectKernelTunables"};

// The settings that rules look at; not the others, among them what a unit starts and its
// environment.
std::string UnitSettings(std::string_view text) {
  std::string kept;
  for (const UnitSetting& setting : ParseUnitFile(text)) {
    if (!IsOneOf(setting.section, {"Service", "Scope"})) continue;
    if (std::find(std::begin(kUnitKeys), std::end(kUnitKeys), setting.key) == std::end(kUnitKeys))
      continue;
    kept += Text('[', setting.section, "]\n", setting.key, '=', setting.value, '\n');
  }
  return kept;
}

// The rule for the text of the files a pattern of fnmatch(3) fits, '*' for slashes too. The first
// that fits counts.
struct FileRule {
  const char* path;
  std::string (*reduce)(std::string_view text);
};

constexpr FileRule kFileRules[] = {
    {"/proc/cgroups", AsIs},
    {"/proc/cmdline", KernelParameters},
    {"/proc/filesystems", AsIs},
    {"/proc/swaps", AsIs},
    {"/proc/net/unix", UnixListeners},
    {"/proc/net/tcp", TcpListeners},
    {"/proc/net/tcp6", TcpListeners},
    {"/proc/sys/kernel/core_pattern", FirstWord},
    {"/proc/sys/*", AsIs},
    {"/proc/*/mountinfo", Mounts},
    {"/proc/*/status", Status},
    {"/proc/*/cgroup", AsIs},
    {"/proc/*/uid_map", AsIs},
    {"/proc/*/setgroups", AsIs},
    {"/proc/*/attr/current", AsIs},
    {"/sys/kernel/security/lsm", AsIs},
    {"/sys/fs/selinux/enforce", AsIs},
    {"/etc/os-release", ReleaseName},
    {"/usr/lib/os-release", ReleaseName},
    {"/etc/passwd", Accounts},
    {"/etc/group", Groups},
    {"/etc/subuid", SubordinateIds},
    {"/etc/subgid", SubordinateIds},
    {"/etc/login.defs", IdBounds},
    {"*/systemd/*.service", UnitSettings},
    {"*/systemd/*.conf", UnitSettings},
    // The control files, wherever the hierarchies are mounted.
    {"*/cgroup.*", AsIs},
    {"*/memory.*", AsIs},
    {"*/pids.*", AsIs},
    {"*/cpu.*", AsIs},
};

// The names in a directory that rules look for: drop-ins, the library with systemd's version, and
// anywhere else the cgroups of cells.
std::string DirectoryNames(const std::string& path, std::string_view names) {
  bool units = ::fnmatch("*/systemd/*.d", path.c_str(), 0) == 0;
  bool libraries = ::fnmatch("*/systemd", path.c_str(), 0) == 0;
  std::string kept;
  for (std::string_view name : Split(names, '\0')) {
    bool counts = units       ? name.ends_with(".conf")
                  : libraries ? name.starts_with("libsystemd-shared-")
                              : cgroup::IsRunName(name);
    if (counts) kept += Text(name, '\0');
  }
  return kept;
}

std::optional<std::string> FileText(const std::string& path, std::string_view text) {
  for (const FileRule& rule : kFileRules) {
    if (::fnmatch(rule.path, path.c_str(), 0) == 0) return rule.reduce(text);
  }
  return std::nullopt;
}

// An error of choosing an engine quotes the value of the setting.
std::string WithoutValue(const std::string& error) {
  if (error.empty()) return {};
  for (std::string_view name : {"DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST"}) {
    if (error.starts_with(Text(name, ": ")))
      return Text(name, ": it names no engine's unix socket");
  }
  return "the docker client's configuration names no engine's unix socket";
}

}  // namespace

std::optional<std::string> Reduce(const RecordKey& key, std::string_view text) {
  switch (key.question) {
    case Question::kRead:
      return FileText(key.path, text);
    case Question::kList:
      return DirectoryNames(key.path, text);
    case Question::kLook:
    case Question::kLink:
    case Question::kCapability:
      break;
  }
  return std::string(text);
}

LiveFacts Reduced(LiveFacts facts) {
  facts.engine_error = WithoutValue(facts.engine_error);
  bool is_path = facts.runtime_directory.empty() || facts.runtime_directory.starts_with('/');
  if (!is_path) facts.runtime_directory = "(no absolute path)";
  return facts;
}

}  // namespace taskcell::probe
