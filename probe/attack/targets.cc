#include "probe/attack/targets.h"

#include <optional>

#include "launcher/base/text.h"

namespace taskcell::attack {
namespace {

struct TextField {
  std::string_view name;
  std::string Targets::*place;
};
constexpr TextField kTexts[] = {
    {"scratch", &Targets::scratch},
    {"secret", &Targets::secret},
    {"socket", &Targets::socket},
    {"abstract-socket", &Targets::abstract_socket},
    {"gate", &Targets::gate},
    {"queue", &Targets::queue},
    {"shared-file", &Targets::shared_file},
    {"setuid-program", &Targets::setuid_program},
    {"capable-program", &Targets::capable_program},
    {"group-secret", &Targets::group_secret},
    {"roots", &Targets::roots},
    {"canary", &Targets::canary},
};

struct NumberField {
  std::string_view name;
  uint64_t Targets::*place;
};
constexpr NumberField kNumbers[] = {
    {"port", &Targets::port},
    {"ipc-key", &Targets::ipc_key},
    {"victim", &Targets::victim},
    {"victim-address", &Targets::victim_address},
    {"gateway-uid", &Targets::gateway_uid},
    {"pids", &Targets::pids},
    {"memory-bytes", &Targets::memory_bytes},
    {"cpu-millis", &Targets::cpu_millis},
    {"nofile", &Targets::nofile},
    {"tmpfs-bytes", &Targets::tmpfs_bytes},
    {"output-bytes", &Targets::output_bytes},
    {"deadline-ms", &Targets::deadline_ms},
};

}  // namespace

std::vector<std::string> TargetWords(const Targets& targets) {
  std::vector<std::string> words;
  for (const TextField& field : kTexts) {
    const std::string& value = targets.*field.place;
    if (!value.empty()) words.push_back(Text(field.name, "=", value));
  }
  for (const NumberField& field : kNumbers)
    words.push_back(Text(field.name, "=", targets.*field.place));
  return words;
}

Status ParseTarget(std::string_view word, Targets& targets) {
  std::size_t equals = word.find('=');
  std::string_view name = word.substr(0, equals);
  std::string_view value = equals == word.npos ? "" : word.substr(equals + 1);
  for (const TextField& field : kTexts) {
    if (field.name != name) continue;
    targets.*field.place = value;
    return Ok();
  }
  for (const NumberField& field : kNumbers) {
    std::optional<uint64_t> number = ParseUnsigned(value);
    if (field.name != name || !number) continue;
    targets.*field.place = *number;
    return Ok();
  }
  return Error(Kind::kUsage, Text("'", Printable(word), "' names no target"));
}

}  // namespace taskcell::attack
