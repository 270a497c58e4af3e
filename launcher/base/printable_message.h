#pragma once

#include <string>
#include <string_view>

namespace taskcell {

// As Printable, but backslashes stay as they are: for a message whose quoted parts went through
// Printable already, and for text from elsewhere that should have. What it returns it leaves as it
// is.
std::string PrintableMessage(std::string_view text);

// True where `text`, which is valid UTF-8, starts with one of U+0080 to U+009F: controls in one
// character, which terminals obey as they do those that start with ESC.
bool IsC1Control(std::string_view text);

}  // namespace taskcell
