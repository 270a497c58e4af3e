#pragma once

#include <string>
#include <string_view>

#include "launcher/base/error.h"
#include "probe/engine/answers.h"

namespace taskcell::probe {

// What NameSelinux's texts begin with.
inline constexpr std::string_view kSelinuxLabels = "SELinux labels this engine's containers";

// What /sys/fs/selinux/enforce says: "1", "0", or empty where it cannot be seen.
std::string SelinuxEnforce();

// Puts before the error of a cell that was not made what SELinux has to do with it, where it bears
// its signature: the engine labels its containers (name=selinux) and this host does not only log,
// and the container was denied something when it started, or its first process did not come to the
// gate in `run_directory`. Any other error stays as it is. Pure.
Error NameSelinux(Error error, const EngineInfo& engine, std::string_view enforce,
                  std::string_view run_directory);

}  // namespace taskcell::probe
