#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace taskcell {

// The login name of `uid` in a passwd(5) text, or "" where it has none. Pure.
std::string LoginName(std::string_view passwd, uint32_t uid);

// The uid of the login name `name` in a passwd(5) text. Pure.
std::optional<uint32_t> UserId(std::string_view passwd, std::string_view name);

// The login group of `uid` in a passwd(5) text. Pure.
std::optional<uint32_t> LoginGroup(std::string_view passwd, uint32_t uid);

// The login group of `uid` where nobody else is in it, by a passwd(5) and a group(5) text: what
// that group may write, only its user may. None where there is no such user, group or certainty.
// Pure.
std::optional<uint32_t> OwnGroup(std::string_view passwd, std::string_view group, uint32_t uid);

}  // namespace taskcell
