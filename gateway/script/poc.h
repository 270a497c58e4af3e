#pragma once

#include <string>
#include <string_view>

#include "gateway/script/script.h"

namespace taskcell::gateway {

inline constexpr uint64_t kPocTimeoutMs = 120'000;
inline constexpr std::size_t kMaxPocBytes = 4000;  // of the script, and of its output

// What a security audit's proof of concept came to: a piece of evidence.
struct PocEvidence {
  std::string_view kind;  // "poc_transcript" or "poc_skipped"
  std::string detail;
};

// Runs a proof of concept in a cell or not at all, whatever script_when_unavailable says; its time
// limit is the request's. Secrets in it and in its output are masked (MaskSecrets).
PocEvidence RunPoc(const ScriptRequest& request, Surroundings& surroundings);

// Replaces what has the form of a credential by "<redacted>": private keys, tokens with a known
// prefix, what follows "Bearer ".
std::string MaskSecrets(std::string_view text);

// What evidence has of a text: its secrets masked, and of more than kMaxPocBytes the beginning,
// with the mark of the cut in that many.
std::string PocText(std::string_view text);

// As one JSON object.
std::string PocJson(const PocEvidence& evidence);

}  // namespace taskcell::gateway
