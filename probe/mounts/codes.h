#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace taskcell::probe::audit {

// What is asked of a directory.
enum class Policy : uint8_t {
  kAgent,   // what of an agent directory a cell would see, and what not
  kStrict,  // whether everything in it is plain
  kBind,    // whether the path can be trusted at all: nothing below it is looked at
};
std::string_view Name(Policy policy);  // "agent", "strict", "bind"
std::optional<Policy> PolicyNamed(std::string_view name);

// Every finding, in the order of the table in taskcell-probe(1). Names and meanings are stable.
enum class Code : uint8_t {
  kSymlinkEscapes,
  kMagicLink,
  kSymlinkUnresolved,
  kSymlinkDangling,
  kSymlinkInside,
  kHardLinkLeaves,
  kHardLinkUnresolved,
  kHardLinkClosed,
  kMount,
  kMountLoop,
  kSocket,
  kFifo,
  kDevice,
  kSetId,
  kFileCapability,
  kWritable,
  kAccessList,
  kForeignOwner,
  kOverlayAttribute,
  kImmutable,
  kForeignContent,
  kAncestorOwner,
  kAncestorWritable,
  kAncestorLink,
  kEntrySkipped,
  kOverLimit,
  kNotText,
  kChanged,
  kUnreadable,
  kTooDeep,
  kTooMany,
  kTimeout,
  kHangs,
};
inline constexpr std::size_t kCodes = static_cast<std::size_t>(Code::kHangs) + 1;

enum class Severity : uint8_t {
  kError,    // somebody can make a cell see, or do, what is not in the directory
  kWarning,  // not plain; harmless today or hard to use
  kUnknown,  // could not be judged
  kNote,     // worth knowing
};
std::string_view Name(Severity severity);  // "error", "warning", "unknown", "note"

struct CodeText {
  std::string_view name;   // "symlink_escapes"
  std::string_view title;  // what it is, in a few words
  std::string_view gain;   // what an attacker gets from it
  std::string_view fix;
};
const CodeText& TextOf(Code code);
Severity SeverityOf(Code code, Policy policy);
// Whether it is about a walk that did not come to its end, not about what it met.
bool IsOfTheWalk(Code code);

}  // namespace taskcell::probe::audit
