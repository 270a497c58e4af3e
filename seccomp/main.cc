// taskcell-profile: reads a seccomp profile in Docker's JSON format from standard input and writes
// the filter it stands for, as an array of struct sock_filter, to standard output. A program of its
// own, so that taskcell-launch, which starts it for --seccomp, needs neither libseccomp nor a JSON
// library for every other launch.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "seccomp/profile.h"
#include "seccomp/profile_loader.h"

namespace {

using taskcell::seccomp::Architecture;
using taskcell::seccomp::kMaxProfileBytes;
using taskcell::seccomp::LoadedProfile;

#if defined(__x86_64__)
constexpr Architecture kArchitecture = Architecture::kX86_64;
#elif defined(__aarch64__)
constexpr Architecture kArchitecture = Architecture::kAarch64;
#endif

// At most one byte more than a profile may have: the loader says so then.
std::string ReadInput() {
  std::string text;
  std::array<char, 65536> piece;
  while (text.size() <= kMaxProfileBytes) {
    std::size_t got = std::fread(piece.data(), 1, piece.size(), stdin);
    if (got == 0) break;
    text.append(piece.data(), got);
  }
  return text;
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char**) {
  if (argc != 1) return Fail("usage: taskcell-profile <PROFILE.json >FILTER");
  std::string error;
  std::optional<LoadedProfile> profile =
      taskcell::seccomp::LoadProfile(ReadInput(), kArchitecture, error);
  if (!profile) return Fail(error);
  std::size_t wanted = profile->code.size();
  std::size_t put = std::fwrite(profile->code.data(), sizeof profile->code[0], wanted, stdout);
  if (put != wanted || std::fflush(stdout) != 0) return Fail("the filter could not be written");
  return 0;
}
