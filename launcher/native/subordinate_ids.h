#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::native {

// A run of ids that /etc/subuid or /etc/subgid grants to a user.
struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

inline constexpr std::size_t kMaxSubordinateFileBytes = 4U << 20U;

// The codes of what is wrong with a line of one's own.
inline constexpr std::string_view kSubidsMalformed = "malformed";
inline constexpr std::string_view kSubidsOverflow = "overflow";

// The ranges a subuid(5) file grants to the user `name` or, where the entry is by number, `uid`; in
// file order. Lines of other users are skipped unread; blank lines and '#' comments are allowed. A
// line of this user that is malformed, empty (count 0), starts at 0 or passes 2^32 - 2 (the last id
// there is) is an Error of kind kConfig with one of the codes above, naming the line, so that no id
// is ever used that the file does not clearly grant. Pure.
Result<std::vector<IdRange>> ParseSubordinateIds(std::string_view text, std::string_view name,
                                                 uint32_t uid);

// One id of the ranges: the (`pick` modulo their size)-th, so that cells of different runs get
// different kernel ids. `ranges` must not be empty. Pure.
uint32_t PickId(const std::vector<IdRange>& ranges, uint64_t pick);

// What both files grant a user.
struct SubordinateIds {
  std::vector<IdRange> uids;
  std::vector<IdRange> gids;
};

// A file of accounts, of at most kMaxSubordinateFileBytes; empty where there is none.
Result<std::string> ReadAccountFile(const char* path);

// The texts of /etc/passwd, /etc/subuid and /etc/subgid.
struct SubordinateFiles {
  std::string passwd;
  std::string uids;
  std::string gids;
};
Result<SubordinateFiles> ReadSubordinateFiles();
// What they grant `uid`, whether an account has it or not; either list may come back empty. Pure.
Result<SubordinateIds> GrantedIds(const SubordinateFiles& files, uint32_t uid);

// Both in one: what an engine's own user namespace, which maps all of them, is made of. For the ids
// of a cell see ReadFreeSubordinateIds.
Result<SubordinateIds> ReadSubordinateIds(uint32_t uid);

}  // namespace taskcell::native
