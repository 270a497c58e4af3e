#include "probe/rules/subid_rules.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/native/subordinate_ids.h"

namespace taskcell::probe {
namespace {

using native::IdRange;

bool IsOwn(std::string_view name, std::string_view user, uint32_t uid) {
  return (!user.empty() && name == user) || name == std::to_string(uid);
}

bool Overlap(uint64_t first_a, uint64_t count_a, uint64_t first_b, uint64_t count_b) {
  return count_a > 0 && count_b > 0 && first_a < first_b + count_b && first_b < first_a + count_a;
}

uint64_t Total(const std::vector<IdRange>& ranges) {
  uint64_t total = 0;
  for (const IdRange& range : ranges) total += range.count;
  return total;
}

// A number of login.defs(5), such as UID_MAX.
uint64_t Setting(std::string_view login_defs, std::string_view key, uint64_t otherwise) {
  for (std::string_view line : Split(login_defs, '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() >= 2 && words[0] == key) return ParseUnsigned(words[1]).value_or(otherwise);
  }
  return otherwise;
}

// What one of the two files is compared with.
struct List {
  std::string_view path;
  std::string_view text;
  std::string_view accounts;  // passwd or group
  std::string_view kind;      // "uid" or "gid"
  uint64_t first_real;        // what the administrator's tools give to people
  uint64_t last_real;
  std::vector<IdRange> own;
};

// The account whose id is in the ranges, or what would be one.
std::string CoveredAccount(const List& list) {
  for (const IdRange& range : list.own) {
    for (std::string_view line : Split(list.accounts, '\n')) {
      std::vector<std::string_view> fields = Split(line, ':');
      std::optional<uint64_t> id = fields.size() >= 3 ? ParseUnsigned(fields[2]) : std::nullopt;
      if (id && Overlap(range.first, range.count, *id, 1))
        return Text(list.kind, ' ', *id, " of '", Printable(fields[0]), "'");
    }
    uint64_t real = list.last_real < list.first_real ? 0 : list.last_real - list.first_real + 1;
    if (Overlap(range.first, range.count, list.first_real, real))
      return Text("the ", list.kind, "s ", list.first_real, " to ", list.last_real, " of people");
  }
  return {};
}

// Another user's name whose range meets one of the own.
std::optional<std::string> OverlappingUser(const List& list, std::string_view user, uint32_t uid) {
  for (std::string_view line : Split(list.text, '\n')) {
    std::vector<std::string_view> fields = Split(line, ':');
    if (fields.size() != 3 || line.front() == '#' || IsOwn(fields[0], user, uid)) continue;
    std::optional<uint64_t> first = ParseUnsigned(fields[1]);
    std::optional<uint64_t> count = ParseUnsigned(Trim(fields[2]));
    if (!first || !count || *first > UINT32_MAX || *count > UINT32_MAX) continue;
    for (const IdRange& range : list.own) {
      if (Overlap(range.first, range.count, *first, *count)) return std::string(fields[0]);
    }
  }
  return std::nullopt;
}

// The first id behind every range of both files, not below where such ranges begin.
uint64_t FreeId(const SubidFacts& facts) {
  uint64_t free_id = 100'000;
  for (const sys::FileSeen* seen : {&facts.subuid, &facts.subgid}) {
    for (std::string_view line : Split(seen->text, '\n')) {
      std::vector<std::string_view> fields = Split(line, ':');
      if (fields.size() != 3) continue;
      std::optional<uint64_t> first = ParseUnsigned(fields[1]);
      std::optional<uint64_t> count = ParseUnsigned(Trim(fields[2]));
      if (first && count && *first <= UINT32_MAX && *count <= UINT32_MAX)
        free_id = std::max(free_id, *first + *count);
    }
  }
  return free_id;
}

class Assessor {
 public:
  Assessor(const SubidFacts& facts, std::string_view user, uint32_t uid)
      : facts_(facts), user_(user), uid_(uid) {}

  Assessment Assess();

 private:
  Assessment Parse(List& list, const sys::FileSeen& seen);
  Assessment Ranges(const List& uids, const List& gids) const;
  Assessment Missing(std::string_view state, std::string_view what) const;
  // The command that gives the user a whole range of both kinds.
  std::string AddCommand() const;
  std::string Name() const { return user_.empty() ? std::to_string(uid_) : std::string(user_); }

  const SubidFacts& facts_;
  std::string_view user_;
  uint32_t uid_;
};

std::string Assessor::AddCommand() const {
  uint64_t first = FreeId(facts_);
  if (first + kWholeRange > UINT32_MAX) return "give a free range of 65536 ids in the file";
  std::string range = Text(first, '-', first + kWholeRange - 1);
  return Text("usermod --add-subuids ", range, " --add-subgids ", range, ' ', ShellWord(Name()));
}

// An empty state: nothing is wrong so far.
Assessment Assessor::Parse(List& list, const sys::FileSeen& seen) {
  if (seen.state == sys::FileSeen::State::kUnreadable)
    return {"malformed", Text(Printable(list.path), " cannot be read"), Who::kAdmin,
            Text("as administrator: chmod 644 ", ShellWord(list.path))};
  auto ranges = native::ParseSubordinateIds(list.text, user_, uid_);
  if (!ranges.ok())
    return {std::string(ranges.error().code), Text(Printable(list.path), ": ", ranges.error().text),
            Who::kAdmin, Text("as administrator: mend that line of ", ShellWord(list.path))};
  list.own = std::move(ranges).value();
  return {};
}

Assessment Assessor::Missing(std::string_view state, std::string_view what) const {
  return {std::string(state),
          Text("no subordinate ", what, " are granted to ", Printable(Name()),
               ": cells map the caller's own id alone (one-uid mode)"),
          Who::kAdmin, "as administrator: " + AddCommand()};
}

Assessment Assessor::Ranges(const List& uids, const List& gids) const {
  if (uids.own.empty() && gids.own.empty()) return Missing("none", "uids and gids");
  if (uids.own.empty()) return Missing("missing_uid", "uids");
  if (gids.own.empty()) return Missing("missing_gid", "gids");
  for (const List* list : {&uids, &gids}) {
    std::string covered = CoveredAccount(*list);
    if (covered.empty()) continue;
    return {"covers_real_users",
            Text("the range of ", Printable(Name()), " in ", Printable(list->path), " contains ",
                 covered),
            Who::kAdmin,
            Text("as administrator: take that line out of ", ShellWord(list->path),
                 ", then: ", AddCommand())};
  }
  for (const List* list : {&uids, &gids}) {
    std::optional<std::string> other = OverlappingUser(*list, user_, uid_);
    if (!other) continue;
    return {"overlap",
            Text("the range of ", Printable(Name()), " in ", Printable(list->path),
                 " overlaps that of '", Printable(*other), "': each can reach the other's files"),
            Who::kAdmin,
            Text("as administrator: take the line of one of them out of ", ShellWord(list->path),
                 ", then: ", AddCommand())};
  }
  uint64_t least = std::min(Total(uids.own), Total(gids.own));
  if (least < kWholeRange)
    return {"short",
            Text(Printable(Name()), " has ", least,
                 " subordinate ids: enough for taskcell's cells, too few "
                 "for images that use ",
                 kWholeRange),
            Who::kAdmin, "as administrator: " + AddCommand()};
  return {"ok", Text(Printable(Name()), " has ", least, " subordinate ids"), Who::kNone, ""};
}

Assessment Assessor::Assess() {
  std::string_view defs = facts_.login_defs.text;
  List uids{facts_.subuid_path,
            facts_.subuid.text,
            facts_.passwd.text,
            "uid",
            Setting(defs, "UID_MIN", 1000),
            Setting(defs, "UID_MAX", 60000),
            {}};
  List gids{facts_.subgid_path,
            facts_.subgid.text,
            facts_.group.text,
            "gid",
            Setting(defs, "GID_MIN", 1000),
            Setting(defs, "GID_MAX", 60000),
            {}};
  for (auto& [list, seen] : {std::pair(&uids, &facts_.subuid), std::pair(&gids, &facts_.subgid)}) {
    Assessment wrong = Parse(*list, *seen);
    if (!wrong.state.empty()) return wrong;
  }
  return Ranges(uids, gids);
}

}  // namespace

Assessment AssessSubids(const SubidFacts& facts, std::string_view user, uint32_t uid) {
  return Assessor(facts, user, uid).Assess();
}

std::string OwnLines(std::string_view text, std::string_view user, uint32_t uid) {
  std::string lines;
  for (std::string_view line : Split(text, '\n')) {
    if (IsOwn(Split(line, ':')[0], user, uid)) lines += Text(lines.empty() ? "" : "; ", line);
  }
  return lines;
}

}  // namespace taskcell::probe
