#include "tests/support/as_test_user.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/fixture.h"

namespace taskcell::test {

std::string BuiltBeside(const std::string& path) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / path).lexically_normal();
}

void AsTestUser::SetUp() {
  auto user = TestUser();
  bool is_root = ::geteuid() == 0;
  if (is_root && !user.has_value()) return;
  char pattern[] = "/tmp/taskcell-as-user-XXXXXX";
  if (::mkdtemp(pattern) == nullptr) std::abort();
  directory_ = pattern;
  for (const std::string& program : programs_) {
    std::string copy = Copy(std::filesystem::path(program).filename());
    std::filesystem::copy_file(program, copy);
    if (::chmod(copy.c_str(), 0755) != 0) std::abort();
  }
  if (!is_root) return;
  if (::chown(directory_.c_str(), user->uid, user->gid) != 0 || ::setgroups(0, nullptr) != 0 ||
      ::setresgid(user->gid, user->gid, user->gid) != 0 ||
      ::setresuid(user->uid, user->uid, user->uid) != 0)
    std::abort();
}

void AsTestUser::TearDown() {
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

}  // namespace taskcell::test
