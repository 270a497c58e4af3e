#include "launcher/native/own_filter.h"

#include <fcntl.h>

#include "launcher/base/text.h"
#include "launcher/native/own_program.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"

namespace taskcell::native {
namespace {

constexpr std::string_view kCompiler = "taskcell-profile";
constexpr int kTimeoutMs = 10'000;

}  // namespace

Result<std::string> CompileProfile(const std::string& path) {
  UniqueFd profile = TRY(sys::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info = TRY(sys::Stat(profile.get()));
  if (!S_ISREG(info.st_mode)) return Error(Kind::kUsage, "it is not a plain file");
  OwnProgram compiler = TRY(OpenOwnProgram(kCompiler));
  sys::ProgramResult done = TRY(sys::RunProgram({compiler.path}, kTimeoutMs, profile.get()));
  if (done.exit.signal == 0 && done.exit.status == 0) return std::move(done.output);
  return Error(Kind::kConfig, Text(kCompiler, ": ", Printable(Trim(done.errors))));
}

}  // namespace taskcell::native
