#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gateway/egress/refusal.h"
#include "gateway/egress/upstream.h"

namespace taskcell::gateway {

// Refuses an answer that must not reach the cell at all: a redirect, an encoded body (the broker
// could not read along), an impossible status.
std::optional<Refusal> CheckAnswer(const UpstreamAnswer& answer);

// The header lines a cell gets of an answer, each with its CR LF: those on a short list only. A
// value that holds `secret` becomes "redacted" and sets `echoes`, also where the header is not
// passed on; one with a byte that is not printable ASCII is left out.
std::string AnswerHeaderLines(const UpstreamAnswer& answer, std::string_view secret, bool* echoes);

}  // namespace taskcell::gateway
