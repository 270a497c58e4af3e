#pragma once

#include <string>
#include <string_view>

#include "gateway/config/value.h"
#include "launcher/base/result.h"
#include "launcher/mounts/file_reader.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxConfigBytes = 4U << 20U;  // config.toml and agent.toml each
// Brackets open at once, and parts of one dotted key or header. Both are checked before the parser
// sees the text, because it recurses for each.
inline constexpr int kMaxTomlNesting = 64;
inline constexpr int kMaxTomlKeyParts = 32;

// Refuses a text whose nesting or dotted keys pass the bounds. Knows strings and comments, so that
// nothing inside them counts. Pure; linear in the text.
Status CheckTomlShape(std::string_view text);

// Parses `text`, at most kMaxConfigBytes. `name` is how the file is called in messages
// ("config.toml"). Every Error is of kind kConfig and begins with "<name> is not valid TOML";
// values of the file do not appear in it, since they may be secrets.
Result<ConfigValue> ParseToml(std::string_view text, std::string_view name);

// Reads and parses a file below `dir_fd` (no symbolic links). kConfig "<name> could not be read" on
// every failure but a missing file, which is an Error with err ENOENT.
Result<ConfigValue> ReadToml(mounts::FileReader& files, int dir_fd, const std::string& path,
                             std::string_view name);

}  // namespace taskcell::gateway
