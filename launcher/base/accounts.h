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

}  // namespace taskcell
