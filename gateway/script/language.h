#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::gateway {

enum class ScriptLanguage : uint8_t { kPython, kBash, kJavascript };

// "python", "bash" or "javascript". Error code unsupported_language.
Result<ScriptLanguage> ParseLanguage(std::string_view name);
std::string_view LanguageName(ScriptLanguage language);

// The program that runs it, to be looked up in PATH.
std::string_view Interpreter(ScriptLanguage language);
// What its file is called.
std::string_view ScriptFile(ScriptLanguage language);

}  // namespace taskcell::gateway
