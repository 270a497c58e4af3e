#include "launcher/native/option_values.h"

#include <cctype>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/cell/cpu_list.h"
#include "launcher/native/values.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kHighestId = 0xFFFFFFFEU;
constexpr uint64_t kHighestDescriptor = 1U << 20U;

Error Usage(std::string text) { return Error(Kind::kUsage, std::move(text)); }

}  // namespace

// Without DST the source's own path. A source with a colon cannot be given: as in every program of
// this kind.
BindOption ParseBind(std::string_view text, bool writable) {
  constexpr std::string_view kNoLinks = ":nosymfollow";
  bool follows_links = !text.ends_with(kNoLinks);
  if (!follows_links) text.remove_suffix(kNoLinks.size());
  std::size_t colon = text.find(':');
  std::string source(text.substr(0, colon));
  std::string target = colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1));
  return {std::move(source), std::move(target), writable, follows_links};
}

Result<cell::PlannedTmpfs> ParseTmpfs(std::string_view text) {
  std::vector<std::string_view> parts = Split(text, ':');
  bool exec = parts.size() == 3 && parts[2] == "exec";
  if (parts.size() != 2 && !exec)
    return Usage(Text("'", Printable(text), "' is not TARGET:SIZE or TARGET:SIZE:exec"));
  cell::PlannedTmpfs tmpfs;
  tmpfs.target = std::string(parts[0]);
  tmpfs.size_bytes = TRY(ParseSize(parts[1]));
  tmpfs.exec = exec;
  return tmpfs;
}

Result<uint32_t> ParseId(std::string_view text) {
  return static_cast<uint32_t>(TRY(ParseCount(text, kHighestId)));
}

Result<int> ParseDescriptor(std::string_view text) {
  uint64_t number = TRY(ParseCount(text, kHighestDescriptor));
  if (number < 3) return Usage("a descriptor below 3 is standard input, output or error");
  return static_cast<int>(number);
}

Result<FileOption> ParseFile(std::string_view text) {
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return Usage(Text("'", Printable(text), "' is not TARGET:DESCRIPTOR"));
  return FileOption{std::string(text.substr(0, colon)),
                    TRY(ParseDescriptor(text.substr(colon + 1)))};
}

Status CheckVariable(std::string_view text) {
  std::size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals > 0) return Ok();
  return Usage(Text("'", Printable(text), "' is not NAME=VALUE"));
}

Status CheckMayBeMissing(std::string_view value) {
  if (value == "cpu") return Ok();
  return Usage(Text("'", Printable(value),
                    "' cannot be done without: only the cpu limit can be left out (cpu)"));
}

Result<std::string> ParseCgroupParent(std::string_view value) {
  if (value != "/" && cell::IsNormalPath(value)) return std::string(value.substr(1));
  return Usage(Text("'", Printable(value),
                    "' is no cgroup: its path below the mount point, such as /taskcell/jobs"));
}

Result<std::string> ParseCpuSet(std::string_view value) {
  std::optional<std::string> list = cell::NormalCpuList(value);
  if (list) return *std::move(list);
  return Usage(Text("'", Printable(value), "' is no list of processors, such as 0-2,5"));
}

// A host name: what another program would take for an option is none.
Result<std::string> ParseHostname(std::string_view value) {
  bool plain = !value.empty() && std::isalnum(static_cast<unsigned char>(value[0])) != 0;
  if (plain) return std::string(value);
  return Usage(
      Text("'", Printable(value), "' is no host name: it begins with a letter or a digit"));
}

Result<bool> ParseProc(std::string_view value) {
  if (value == "full" || value == "pids") return value == "pids";
  if (value == "none") {
    return Usage(
        "a cell cannot be without /proc: what it is is read there from inside before a program "
        "runs. 'pids' shows the program's own processes and nothing of the host");
  }
  return Usage(Text("'", Printable(value), "' is neither full nor pids"));
}

}  // namespace taskcell::native
