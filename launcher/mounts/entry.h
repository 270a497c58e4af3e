#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::mounts {

// The entries of an agent directory that a cell may see, and what each must be. Nothing else of the
// directory is ever looked at: .mcp.json holds the agent's keys.
struct AllowedEntry {
  std::string_view name;
  cell::EntryKind kind;
};
inline constexpr std::array<AllowedEntry, 8> kAgentEntries = {{
    {"SOUL.md", cell::EntryKind::kFile},
    {"IDENTITY.md", cell::EntryKind::kFile},
    {"CLAUDE.md", cell::EntryKind::kFile},
    {"AGENTS.md", cell::EntryKind::kFile},
    {"GEMINI.md", cell::EntryKind::kFile},
    {"CONTRACT.toml", cell::EntryKind::kFile},
    {"SKILLS", cell::EntryKind::kDirectory},
    {"wiki", cell::EntryKind::kDirectory},
}};
// Those that are directories.
inline constexpr std::array<std::string_view, 2> kAgentTrees = {"SKILLS", "wiki"};

// What SOUL.md and IDENTITY.md may have each: they go into every prompt, whole or not at all.
inline constexpr std::size_t kMaxPersonaBytes = 256U << 10U;

// UTF-8 without NUL bytes: what alone may go into a prompt.
bool IsPersonaText(std::string_view text);

// The names of kAgentEntries that the directory lists, byte for byte: some file systems find an
// entry under other spellings too.
Result<std::set<std::string_view>> ListedEntries(int dir_fd);

enum class Verdict : uint8_t { kSafe, kSkip, kAbsent };

// Why an entry is skipped; kNone with every other verdict.
enum class Reason : uint8_t {
  kNone,
  kSymlink,     // also one that dangles or stays inside
  kHardlink,    // a file with more than one name: the other one may be outside
  kWrongKind,   // a directory where a file belongs, or the reverse
  kMount,       // something is mounted on it
  kSpecial,     // FIFO, socket or device
  kUnreadable,  // the caller may not read it
  kRace,        // it was changed while it was looked at, each of many times
};

std::string_view Name(Verdict verdict);  // "safe", "skip", "absent"
std::string_view Name(Reason reason);    // "symlink", ..., "" for kNone

// "a regular file", "a FIFO", ... of a file's mode.
std::string_view KindName(mode_t mode);

// What a name below a directory turned out to be.
struct Finding {
  Verdict verdict = Verdict::kAbsent;
  Reason reason = Reason::kNone;
  std::string note;     // for a person: what was found and what was expected; empty when safe
  UniqueFd fd;          // kSafe only: open for reading; everything below was read from it
  uint64_t device = 0;  // kSafe, and a skipped kHardlink
  uint64_t inode = 0;   // the same
  uint64_t links = 0;   // the same
  uint64_t size = 0;
};

// Judges the one component `name` of the directory `dir_fd` as an entry of that kind. The name is
// pinned with O_PATH first: what is no plain file or directory then is not opened. What is opened
// for reading after that is proven to be the same inode; where it is not, since somebody exchanged
// the name in between, it was opened without waiting (O_NONBLOCK, O_NOCTTY), is closed at once, and
// the name is judged again, a bounded number of times. Returns an Error only when the system fails
// (no descriptors, no memory, openat2 missing); everything about the entry itself is a verdict.
Result<Finding> Judge(int dir_fd, const std::string& name, cell::EntryKind kind);

// The same for an allowed entry of the agent directory `dir_fd`; `listed` is what ListedEntries
// says of it. What is found there, but is not listed, is skipped as of the wrong kind.
Result<Finding> JudgeAllowed(int dir_fd, const AllowedEntry& allowed,
                             const std::set<std::string_view>& listed);

// The same for an entry of either kind, as met on a walk; `kind` returns which it is. A file may
// have up to `max_links` names.
Result<Finding> JudgeAny(int dir_fd, const std::string& name, cell::EntryKind& kind,
                         uint64_t max_links = 1);

}  // namespace taskcell::mounts
