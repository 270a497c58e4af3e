#include "tests/support/memory_search.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

// One mapping of a process, as /proc/PID/smaps tells it.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string head;   // its first line
  std::string flags;  // " rd wr mr lo dd ..."
};

std::vector<Mapping> MappingsOf(pid_t pid) {
  std::ifstream smaps(Text("/proc/", pid, "/smaps"));
  std::vector<Mapping> mappings;
  for (std::string line; std::getline(smaps, line);) {
    Mapping next;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &next.start, &next.end) == 2) {
      next.head = line;
      mappings.push_back(next);
    } else if (line.starts_with("VmFlags:")) {
      mappings.back().flags = line.substr(8);
    }
  }
  return mappings;
}

std::string BytesOf(int memory, const Mapping& mapping) {
  std::string bytes(mapping.end - mapping.start, '\0');
  const ssize_t got =
      ::pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(mapping.start));
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

Places SearchMemory(pid_t pid, std::string_view text) {
  Places places;
  Result<UniqueFd> memory = sys::Open(Text("/proc/", pid, "/mem"), O_RDONLY);
  if (!memory.ok()) return places;
  for (const Mapping& mapping : MappingsOf(pid)) {
    const std::string bytes = BytesOf(memory->get(), mapping);
    places.bytes += bytes.size();
    const bool is_guarded = mapping.flags.find(" lo") != std::string::npos &&
                            mapping.flags.find(" dd") != std::string::npos;
    for (std::size_t at = bytes.find(text); at != std::string::npos;
         at = bytes.find(text, at + 1)) {
      const std::size_t from = at < 48 ? 0 : at - 48;
      (is_guarded ? places.guarded : places.elsewhere)
          .push_back(Text(mapping.head, ": ", Printable(bytes.substr(from, 144))));
    }
  }
  return places;
}

std::vector<pid_t> WithDescendants(pid_t pid) {
  std::vector<pid_t> all = {pid};
  for (std::size_t at = 0; at < all.size(); ++at) {
    // Each thread has children of its own.
    std::error_code ignored;  // a process ends when it likes
    for (const auto& thread :
         std::filesystem::directory_iterator(Text("/proc/", all[at], "/task"), ignored)) {
      std::ifstream children(thread.path() / "children");
      for (pid_t child = 0; children >> child;) all.push_back(child);
    }
  }
  return all;
}

std::optional<pid_t> FindDescendant(pid_t pid, std::string_view last) {
  for (pid_t each : WithDescendants(pid))
    if (ReadText(Text("/proc/", each, "/cmdline")).ends_with(Text('\0', last, '\0'))) return each;
  return std::nullopt;
}

}  // namespace taskcell::test
