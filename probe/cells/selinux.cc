#include "probe/cells/selinux.h"

#include <fcntl.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::probe {
namespace {

bool LabelsContainers(const EngineInfo& engine) {
  return std::any_of(engine.security_options.begin(), engine.security_options.end(),
                     [](const std::string& option) {
                       const std::string_view name =
                           std::string_view(option).substr(0, option.find(','));
                       return name == "name=selinux" || name == "selinux";
                     });
}

bool IsDenial(std::string_view text) {
  for (std::string_view words : {"ermission denied", "peration not permitted", "avc:"})
    if (text.find(words) != text.npos) return true;
  return false;
}

bool HasSignature(const Error& error) {
  if (error.code == "container_start_failed" || error.code == "container_create_failed")
    return IsDenial(error.text);
  return error.code == "cell_mismatch";
}

}  // namespace

std::string SelinuxEnforce() {
  constexpr std::size_t kMost = 16;
  const Result<std::string> enforce = sys::ReadFile(AT_FDCWD, "/sys/fs/selinux/enforce", kMost);
  return enforce.ok() ? std::string(Trim(enforce.value())) : "";
}

Error NameSelinux(Error error, const EngineInfo& engine, std::string_view enforce,
                  std::string_view run_directory) {
  if (!LabelsContainers(engine) || enforce == "0" || !HasSignature(error)) return error;
  const std::string_view home = run_directory.substr(0, run_directory.rfind("/sandbox/runs/"));
  error.text =
      Text(kSelinuxLabels,
           ", which then may not use a home's files: load the policy of "
           "taskcell-gateway(8), SELINUX, and label ",
           Printable(home), "/sandbox container_file_t (ausearch -m avc -ts recent): ", error.text);
  return error;
}

}  // namespace taskcell::probe
