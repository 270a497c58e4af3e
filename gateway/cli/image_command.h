#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell image check`: prints whether the home's engine has the image (`image`, or the one of
// config.toml), for which architecture, and which AI programs run in its cells, a line each, or as
// one JSON object. Returns the exit status: 0 tasks find what they need, 1 not, 2 no such home, or
// an image where there are none, 130 stopped.
int ImageCheckCommand(const std::string& home_option, const std::string& image, bool json);

// `taskcell image pull`: has the home's engine pull it, with its progress on standard error, and
// prints its digest. Returns the exit status: 0; 1 it was not pulled, or is for another
// architecture; 2 no such home; 130 stopped.
int ImagePullCommand(const std::string& home_option, const std::string& image, bool json);

}  // namespace taskcell::gateway
