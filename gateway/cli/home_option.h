#pragma once

#include <string>

#include "gateway/config/environment.h"
#include "gateway/config/home.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// The home that --home (`option`, may be empty) and the environment name, opened.
inline Result<Home> OpenChosenHome(const std::string& option, const Environment& environment) {
  std::string path = TRY(ChooseHome(option, environment));
  return OpenHome(path);
}

}  // namespace taskcell::gateway
