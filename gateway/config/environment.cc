#include "gateway/config/environment.h"

#include <unistd.h>

namespace taskcell::gateway {

Environment ProcessEnvironment() {
  Environment environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string_view Lookup(const Environment& environment, std::string_view name) {
  auto at = environment.find(name);
  return at == environment.end() ? std::string_view() : std::string_view(at->second);
}

}  // namespace taskcell::gateway
