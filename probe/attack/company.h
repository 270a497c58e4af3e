#pragma once

#include <span>
#include <vector>

#include "probe/attack/report.h"
#include "probe/attack/trial.h"

namespace taskcell::attack {

// What several payloads tried in one cell, one after the other, may be said to have shown. A cell
// takes longer to make than most attempts take in it.

// Splits `payloads` into those that one cell takes, in their order: neighbours of one topic that
// may have company (Way::kInChild), each other by itself. Pure.
std::vector<std::span<const Payload* const>> OneCellEach(std::span<const Payload* const> payloads);

// True where what came of payloads in one cell tells of each of them: all told of themselves, none
// got through and nothing is another way outside. Else one may have met what another had done, and
// each is to be tried by itself. Pure.
bool TellsOfEach(const Trial& together);

// Keeps what came out only in company: of `alone`, the same payloads judged by themselves, that
// which got through becomes escaped; and where something outside was changed and none of them is
// escaped, each of them is. Pure.
void KeepEscapes(const Trial& together, std::span<Row> alone);

}  // namespace taskcell::attack
