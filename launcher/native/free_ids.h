#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/native/subordinate_ids.h"

namespace taskcell::native {

// The code where every id that was granted is somebody's.
inline constexpr std::string_view kSubidsInUse = "subids_in_use";

// The ids that lines of passwd(5) or group(5) have in the field `field`, counted from 0. Lines
// without a number there are passed over. Pure.
std::vector<IdRange> AccountIds(std::string_view text, std::size_t field);

// What a subuid(5) file grants to others than the user `name` or `uid`. A line that grants nothing
// clearly is passed over: it is not this user's to mend. Pure.
struct ForeignRange {
  IdRange ids;
  std::string owner;
};
std::vector<ForeignRange> ForeignRanges(std::string_view text, std::string_view name, uint32_t uid);

// `ranges` without the ids of `taken`, in order. Pure.
std::vector<IdRange> Without(const std::vector<IdRange>& ranges, std::vector<IdRange> taken);

// Those of `granted` that may be a cell's. CRITICAL: an account's id is never one: the cell would
// be that account, with its files. Ids that another user was granted as well are left out where
// others remain; else they are taken, and `shared_with` names that user. Code subids_in_use, naming
// `file`, where accounts have them all. Pure.
struct FreeIds {
  std::vector<IdRange> ranges;
  std::string shared_with;
};
Result<FreeIds> FindFree(const std::vector<IdRange>& granted, const std::vector<IdRange>& accounts,
                         const std::vector<ForeignRange>& foreign, std::string_view file);

// What both files grant the calling user that may be a cell's.
struct FreeSubordinateIds {
  SubordinateIds ids;  // either may be empty: nothing is granted
  std::string shared_with;
};
// What to say of a cell under ids that `owner` was granted as well. Pure.
std::string SharedIds(std::string_view owner);

// Reads what ReadSubordinateIds reads, and /etc/group.
Result<FreeSubordinateIds> ReadFreeSubordinateIds(uint32_t uid, uint32_t gid);

}  // namespace taskcell::native
