#pragma once

#include <string>
#include <string_view>

#include "probe/facts/subid_facts.h"
#include "probe/rules/report.h"

namespace taskcell::probe {

// How many ids a container of many users needs; below it a range counts as short.
inline constexpr uint64_t kWholeRange = 65536;

// Judges a user's subordinate ids: "ok", "none", "missing_uid", "missing_gid", "short", "overlap",
// "covers_real_users", "overflow" or "malformed", the worst first. Nobody but the administrator can
// change any. Pure.
Assessment AssessSubids(const SubidFacts& facts, std::string_view user, uint32_t uid);

// The lines of a subuid(5) text that are the user's, joined by "; ". Pure.
std::string OwnLines(std::string_view text, std::string_view user, uint32_t uid);

}  // namespace taskcell::probe
