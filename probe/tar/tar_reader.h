#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "probe/tar/tar_entry.h"

namespace taskcell::probe {

// The entries of an archive that TarWriter::Add wrote; their content refers to `archive`. The bytes
// may be anybody's: what is no archive, is cut short, holds more than `max_entries`, a path that is
// absolute, leads upwards or comes twice, anything but regular files, or a header that
// TarWriter does not write, is kViolation, naming what. Pure.
Result<std::vector<TarEntry>> ReadTar(std::string_view archive, std::size_t max_entries);

}  // namespace taskcell::probe
