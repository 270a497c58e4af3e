#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/mounts/entry.h"
#include "launcher/mounts/file_reader.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxPromptBytes = 4U << 20U;  // what the requester sends
using mounts::kMaxPersonaBytes;                            // SOUL.md and IDENTITY.md each
inline constexpr std::string_view kInvalidPrompt = "invalid_prompt";

// Refuses (code invalid_prompt) a prompt that is blank, larger than kMaxPromptBytes, not UTF-8 or
// with a NUL byte.
Status CheckPrompt(std::string_view prompt);

// Reads SOUL.md and IDENTITY.md from an agent directory or a snapshot of it and joins them to the
// system prompt: "# Soul\n..." and "# Identity\n...", with a rule between them; missing and blank
// ones are left out, and with a warning what is no plain file with one name, or may not be read.
// Error code agent_dir_unmountable when one is over kMaxPersonaBytes
// or not UTF-8: an agent must not run without half of its instructions.
Result<std::string> ReadSystemPrompt(mounts::FileReader& files, int directory_fd,
                                     std::vector<std::string>& warnings);

// The text the AI gets: the prompt, with the system prompt, when there is one, before it in
// <system_instructions>. A closing tag inside it is escaped, so that it can't end early.
std::string WholePrompt(std::string_view system_prompt, std::string_view prompt);

}  // namespace taskcell::gateway
