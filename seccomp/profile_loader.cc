#include "seccomp/profile_loader.h"

#include <utility>

#include "seccomp/filter_builder.h"
#include "seccomp/never_allowed.h"
#include "seccomp/profile.h"

namespace taskcell::seccomp {

std::optional<LoadedProfile> LoadProfile(std::string_view json, Architecture architecture,
                                         std::string& error) {
  const char* go_name = architecture == Architecture::kX86_64 ? "amd64" : "arm64";
  std::optional<Profile> profile = ParseProfile(json, go_name, error);
  if (!profile) return std::nullopt;
  AddNeverAllowed(*profile);
  std::optional<std::vector<sock_filter>> code = BuildFilter(*profile, architecture, error);
  if (!code) return std::nullopt;
  return LoadedProfile{profile->default_action, std::move(*code)};
}

}  // namespace taskcell::seccomp
