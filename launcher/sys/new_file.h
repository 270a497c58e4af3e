#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::sys {

// Makes the file `path` with these bytes, mode 0600. It appears whole or not at all, and one that
// is there already is never replaced, nor one that a link points to: an Error with EEXIST then.
// Nothing else is left in its directory after failure.
Status WriteNewFile(const std::string& path, std::string_view data);

}  // namespace taskcell::sys
