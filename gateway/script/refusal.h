#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/base/error.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// The sandbox cannot run a script. The codes are the guide's: invalid_config, no_runtime,
// runtime_unhealthy, image_missing, create_failed, start_failed.
struct ScriptRefusal {
  std::string_view code;
  std::string why;        // with what was wrong in at most kMaxWhyCharacters of its own words
  std::string remedy;     // whole sentences
  std::string note = {};  // what the remedy's fixed words leave out; a sentence, or nothing
};

inline constexpr std::size_t kMaxWhyCharacters = 300;

// "Script sandbox unavailable (<code>): <why>. The script was not run. <remedy>"
std::string RefusalMessage(const ScriptRefusal& refusal);

// What is wrong with config.toml, in the words of its parser.
ScriptRefusal InvalidScriptConfig(const Error& error);

// What failed in an engine, and when.
enum class EngineStep : uint8_t {
  kFind,   // no engine, or none whose socket is there
  kAsk,    // it does not answer, or cannot be used
  kImage,  // what it says of the image
  kProve,  // its limits
  kMake,   // the cell
  kRun,    // the cell is not what was planned, or cannot start the program
};
// `image` is the section's; natively there is none.
ScriptRefusal EngineRefusal(EngineStep step, const Error& error, cell::Engine engine,
                            const std::string& image);

}  // namespace taskcell::gateway
