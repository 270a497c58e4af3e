#pragma once

#include <string_view>

#include "launcher/base/error.h"

namespace taskcell::native {

// Writes "taskcell-launch: <text>" and a newline to standard error, in one write.
void PrintMessage(std::string_view text);

// The same for an Error, with its reason code in brackets where it has one.
void PrintMessage(const Error& error);

}  // namespace taskcell::native
