#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::probe {

// Bounds of what is read from the docker client's own configuration directory.
inline constexpr std::size_t kMaxDockerConfigBytes = 1U << 20U;
inline constexpr std::size_t kMaxDockerContexts = 256;

// Returns the "currentContext" of the docker client's config.json, empty when there is none.
Result<std::string> ParseCurrentContext(std::string_view config_json);

struct DockerContext {
  std::string name;
  std::string host;  // Endpoints.docker.Host, "" when the context has none
};
Result<DockerContext> ParseDockerContext(std::string_view meta_json);

// Reads the current context's name from <directory>/config.json; "" when the file is absent or
// names none.
Result<std::string> ReadCurrentContext(const std::string& directory);

// Finds the context `name` below <directory>/contexts/meta and returns its docker endpoint; kConfig
// when there is none of that name, or two.
Result<std::string> ReadContextHost(const std::string& directory, const std::string& name);

}  // namespace taskcell::probe
