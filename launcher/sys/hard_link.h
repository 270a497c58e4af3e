#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::sys {

// linkat(2): `to` below `dir_fd` becomes another name of the file `from` there; EEXIST where there
// is one.
Status MakeHardLink(int dir_fd, const std::string& from, const std::string& to);

}  // namespace taskcell::sys
