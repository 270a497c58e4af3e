#include "probe/attack/outside.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/spawn.h"
#include "probe/attack/outcome.h"

namespace taskcell::attack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongest{60'000};  // on a busy machine
constexpr std::size_t kMaxOutputBytes = 16U << 20U;
constexpr int kOutNumber = 3;
constexpr int kDirectoryNumber = 4;
constexpr int kSocketNumber = 5;

// All of it up to the end of file: whoever may still write has the pipe open.
Result<std::string> ReadToEnd(int fd) {
  Clock::time_point deadline = Clock::now() + kLongest;
  std::string text;
  while (text.size() <= kMaxOutputBytes) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (TRY(sys::Poll(fd, POLLIN, static_cast<int>(std::max<int64_t>(left, 0)))) == 0)
      return Error(Kind::kSystem, "it did not end in time", ETIMEDOUT);
    std::array<char, 65536> chunk;
    std::size_t got = TRY(sys::Read(fd, chunk));
    if (got == 0) return text;
    text.append(chunk.data(), got);
  }
  return Error(Kind::kViolation, "it printed without end");
}

}  // namespace

Result<Attempted> TryOutside(const World& world, const Payload& payload) {
  sys::Pipe out = TRY(sys::MakePipe());
  std::vector<std::string> argv = {"taskcell-attacker", Text("--control=", Name(payload.control)),
                                   Text("--out=", kOutNumber)};
  for (std::string& word : TargetWords(TargetsOf(payload, world.outside())))
    argv.push_back(std::move(word));
  argv.emplace_back(payload.name);
  std::vector<sys::PassedDescriptor> passed = {{out.write_end.get(), kOutNumber},
                                               {world.leaked_directory(), kDirectoryNumber},
                                               {world.leaked_socket(), kSocketNumber}};
  sys::Child child = TRY(sys::SpawnProgram(world.program(), argv, {}, passed));
  out.write_end.Reset();
  std::string told = TRY(ReadToEnd(out.read_end.get()));
  TRY(child.Wait());
  std::string_view last = Trim(told);
  std::size_t newline = last.rfind('\n');
  if (newline != last.npos) last.remove_prefix(newline + 1);
  if (last.empty()) return Error(Kind::kSystem, "it ended without a word");
  return ParseOutcome(last, payload.name);
}

}  // namespace taskcell::attack
