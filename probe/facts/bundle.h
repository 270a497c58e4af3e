#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "probe/facts/host_facts.h"
#include "probe/facts/record.h"

namespace taskcell::probe {

// One host as `taskcell-probe collect` holds it: all that the rules need, as plain values.
struct Bundle {
  std::string program;   // the version that collected it
  FactsRequest request;  // whom it was asked about
  // Whose processes are in it, where it is of a running host and not of a directory of files.
  std::optional<uint32_t> collector;
  std::optional<LiveFacts> live;  // where it was asked about the collector
  Record record;
};

// Raised when what an archive holds means something else than before. More files do not: a program
// that misses one says so.
inline constexpr uint64_t kBundleFormat = 1;
inline constexpr std::size_t kMaxBundleBytes = 32U << 20U;
inline constexpr std::size_t kMaxBundleEntries = 16384;

// The bundle as an archive (taskcell-probe(1), ARCHIVES); kUnsupported where it would be over a
// bound. Pure.
Result<std::string> WriteBundle(const Bundle& bundle);

// Reads what WriteBundle wrote, from anywhere: kViolation says what is wrong with it, kUnsupported
// that a newer program made it. Pure.
Result<Bundle> ReadBundle(std::string_view archive);

// The name in an archive of what was asked and of the answer: "read/proc/self/cgroup", or
// "read.EACCES/etc/subuid" where that failed. Bytes that are not printable ASCII, '%' and dots that
// mean a directory are written as %XX, so that no path of a host is a path of the archive. Pure.
std::string EntryName(const RecordKey& key, int err);

// The other way round; nothing for a name that EntryName does not make. Pure.
struct EntryMeaning {
  RecordKey key;
  int err = 0;
};
std::optional<EntryMeaning> ParseEntryName(std::string_view name);

// Which failure an answer is, 0 for none: ENOENT for an absent file. Pure.
int FailureIn(const RecordKey& key, const Answer& answer);

}  // namespace taskcell::probe
