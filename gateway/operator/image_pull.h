#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "probe/engine/answers.h"

namespace taskcell::gateway {

// An image that is now in the store of the engine the home's settings name.
struct PulledImage {
  std::string engine;
  std::string image;
  std::string id;
  std::vector<std::string> digests;
  std::string architecture;
  std::string host_architecture;
};

// Has exactly the engine whose images the home's cells are made of pull `image` (empty: the
// configured one). `on_line` gets its progress. Error codes: invalid_config, docker_unreachable,
// stopped, pull_failed with the remedy; of native, which has no images, pull_failed as well.
Result<PulledImage> PullImage(const Home& home, const std::string& image,
                              Surroundings& surroundings,
                              const std::function<void(const probe::PullLine&)>& on_line);

}  // namespace taskcell::gateway
