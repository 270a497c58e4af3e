#include "probe/attack/attacker/run.h"

#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "probe/attack/outcome.h"

namespace taskcell::attack {
namespace {

constexpr std::size_t kMaxToldBytes = 64U << 10U;

// In the child: the pipe takes the place of standard input, so that no descriptor is open that was
// not before.
[[noreturn]] void TryIt(const Payload& payload, const Targets& targets, UniqueFd pipe, int out) {
  if (!sys::PlaceDescriptor(pipe.get(), STDIN_FILENO).ok()) sys::ExitNow(1);
  pipe.Reset();
  if (out != STDOUT_FILENO) UniqueFd closes_it(out);
  std::string line = OutcomeLine(payload.name, payload.attempt(targets));
  (void)sys::WriteAll(STDIN_FILENO, line);  // ignoring: a missing line is an outcome
  sys::ExitNow(0);
}

Result<std::string> InChild(const Payload& payload, const Targets& targets, int out) {
  sys::Pipe pipe = TRY(sys::MakePipe());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) TryIt(payload, targets, std::move(pipe.write_end), out);
  pipe.write_end.Reset();
  std::string told = TRY(sys::ReadAll(pipe.read_end.get(), kMaxToldBytes));
  sys::ExitInfo ended = TRY(cloned.child.Wait());
  if (ended.signal != 0) return OutcomeLine(payload.name, {-ended.signal, "it was killed"});
  if (!told.empty()) return told;
  return Error(Kind::kViolation, "it ended without a word");
}

}  // namespace

bool RunPayload(const Payload& payload, const Targets& targets, int out) {
  if (!IsInChild(payload))
    return sys::WriteAll(out, OutcomeLine(payload.name, payload.attempt(targets))).ok();
  Result<std::string> line = InChild(payload, targets, out);
  if (line.ok()) return sys::WriteAll(out, line.value()).ok();
  int err = line.error().err == 0 ? EIO : line.error().err;
  return sys::WriteAll(out, OutcomeLine(payload.name, {err, line.error().text})).ok();
}

}  // namespace taskcell::attack
