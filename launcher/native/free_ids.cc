#include "launcher/native/free_ids.h"

#include <algorithm>
#include <optional>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"

namespace taskcell::native {
namespace {

uint64_t End(const IdRange& range) { return uint64_t{range.first} + range.count; }

IdRange Between(uint64_t first, uint64_t end) {
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end - first)};
}

bool Before(const IdRange& a, const IdRange& b) { return a.first < b.first; }

// The first owner whose range meets one of `ranges`.
std::string OwnerOf(const std::vector<ForeignRange>& foreign, const std::vector<IdRange>& ranges) {
  for (const ForeignRange& other : foreign) {
    for (const IdRange& range : ranges) {
      if (range.first < End(other.ids) && other.ids.first < End(range)) return other.owner;
    }
  }
  return {};
}

}  // namespace

std::vector<IdRange> AccountIds(std::string_view text, std::size_t field) {
  std::vector<IdRange> ids;
  for (std::string_view entry : Split(text, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    std::optional<uint64_t> id =
        fields.size() > field ? ParseUnsigned(fields[field]) : std::optional<uint64_t>();
    if (id && *id <= UINT32_MAX) ids.push_back({static_cast<uint32_t>(*id), 1});
  }
  return ids;
}

std::vector<ForeignRange> ForeignRanges(std::string_view text, std::string_view name,
                                        uint32_t uid) {
  std::vector<ForeignRange> ranges;
  const std::string number = std::to_string(uid);
  for (std::string_view entry : Split(text, '\n')) {
    if (entry.empty() || entry.front() == '#') continue;
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() != 3 || fields[0] == number || (!name.empty() && fields[0] == name)) continue;
    std::optional<uint64_t> first = ParseUnsigned(fields[1]);
    std::optional<uint64_t> count = ParseUnsigned(Trim(fields[2]));
    if (!first || !count || *count == 0 || *first > UINT32_MAX || *count > UINT32_MAX) continue;
    ranges.push_back({Between(*first, *first + *count), std::string(fields[0])});
  }
  return ranges;
}

std::vector<IdRange> Without(const std::vector<IdRange>& ranges, std::vector<IdRange> taken) {
  std::sort(taken.begin(), taken.end(), Before);
  std::vector<IdRange> left;
  for (const IdRange& range : ranges) {
    uint64_t first = range.first;
    for (const IdRange& other : taken) {
      if (End(other) <= first) continue;
      if (other.first >= End(range)) break;
      if (other.first > first) left.push_back(Between(first, other.first));
      first = End(other);
    }
    if (first < End(range)) left.push_back(Between(first, End(range)));
  }
  return left;
}

Result<FreeIds> FindFree(const std::vector<IdRange>& granted, const std::vector<IdRange>& accounts,
                         const std::vector<ForeignRange>& foreign, std::string_view file) {
  FreeIds free;
  free.ranges = Without(granted, accounts);
  if (free.ranges.empty() && !granted.empty()) {
    return Error(
               Kind::kConfig,
               Text("every id that ", file,
                    " grants you is that of an account or a group of this host, which a cell "
                    "would then be; the administrator must take that line out and grant free "
                    "ones: usermod ",
                    file == "/etc/subuid" ? "--add-subuids" : "--add-subgids", " FIRST-LAST USER"))
        .Coded(kSubidsInUse);
  }
  std::vector<IdRange> others;
  for (const ForeignRange& range : foreign) others.push_back(range.ids);
  std::vector<IdRange> unshared = Without(free.ranges, std::move(others));
  if (unshared.empty()) {
    free.shared_with = OwnerOf(foreign, free.ranges);
  } else {
    free.ranges = std::move(unshared);
  }
  return free;
}

std::string SharedIds(std::string_view owner) {
  return Text("the subordinate ids of this cell are granted to '", Printable(owner),
              "' as well, who can reach what runs in it; the administrator must give one of you "
              "another range in /etc/subuid and /etc/subgid");
}

Result<FreeSubordinateIds> ReadFreeSubordinateIds(uint32_t uid, uint32_t gid) {
  const SubordinateFiles files = TRY(ReadSubordinateFiles());
  const std::string name = LoginName(files.passwd, uid);
  const SubordinateIds granted = TRY(GrantedIds(files, uid));
  std::vector<IdRange> users = AccountIds(files.passwd, 2);
  users.push_back({uid, 1});  // its account may be elsewhere
  std::vector<IdRange> groups = AccountIds(TRY(ReadAccountFile("/etc/group")), 2);
  for (const IdRange& login : AccountIds(files.passwd, 3)) groups.push_back(login);
  groups.push_back({gid, 1});
  FreeIds uids =
      TRY(FindFree(granted.uids, users, ForeignRanges(files.uids, name, uid), "/etc/subuid"));
  FreeIds gids =
      TRY(FindFree(granted.gids, groups, ForeignRanges(files.gids, name, uid), "/etc/subgid"));
  return FreeSubordinateIds{
      {std::move(uids.ranges), std::move(gids.ranges)},
      uids.shared_with.empty() ? std::move(gids.shared_with) : std::move(uids.shared_with)};
}

}  // namespace taskcell::native
