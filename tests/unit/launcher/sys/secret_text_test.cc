#include "launcher/sys/secret_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/wiped_memory.h"
#include "tests/support/fixture.h"
#include "tests/support/temp_directory.h"

namespace taskcell::sys {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The words behind VmFlags of the mapping that `place` is in (proc(5)).
std::vector<std::string> FlagsOf(const void* place) {
  std::istringstream maps(ReadText("/proc/self/smaps"));
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) {
      const auto at = reinterpret_cast<uintptr_t>(place);
      is_there = at >= start && at < end;
    }
    if (!is_there || !line.starts_with("VmFlags:")) continue;
    std::istringstream words(line.substr(8));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

bool Has(const std::vector<std::string>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

TEST(SecretTextTest, StandsInMemoryThatIsLockedAndInNoCoreDumpAndNoChild) {
  for (std::size_t size :
       {std::size_t{1}, std::size_t{40}, std::size_t{64} << 10U, (std::size_t{64} << 10U) + 1}) {
    const SecretText secret(std::string(size, 's'));
    const std::vector<std::string> flags = FlagsOf(secret.view().data());
    EXPECT_TRUE(Has(flags, "lo")) << "locked; " << size;
    EXPECT_TRUE(Has(flags, "dd")) << "not dumped; " << size;
    EXPECT_TRUE(Has(flags, "wf")) << "wiped on fork; " << size;
    const int found = test::InChild(
        [&secret] { return secret.view().find('s') == std::string_view::npos ? 0 : 1; });
    EXPECT_EQ(found, 0) << size;
    EXPECT_EQ(secret, std::string(size, 's'));
  }
  EXPECT_TRUE(SecretText::AllAreLocked());
  const std::string ordinary(100, 'o');
  EXPECT_FALSE(Has(FlagsOf(ordinary.data()), "lo")) << "control";
  EXPECT_FALSE(Has(FlagsOf(ordinary.data()), "dd")) << "control";
}

TEST(SecretTextTest, NothingIsLeftWhereOneStood) {
  const SecretText stays("stays");  // so that the pages stay, too
  SecretText secret("the-canary-one");
  const char* place = secret.view().data();
  const std::string_view left(place, secret.size());
  const std::string nothing(left.size(), '\0');
  secret.Clear();
  EXPECT_TRUE(secret.empty());
  EXPECT_EQ(left, nothing);
  secret = "the-canary-two";
  ASSERT_EQ(secret.view().data(), place);
  secret = "x";
  EXPECT_EQ(left.substr(1), nothing.substr(1));
  {
    const SecretText other = std::move(secret);
    EXPECT_TRUE(secret.empty());  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(other, "x");
  }
  EXPECT_EQ(left, nothing);
}

TEST(SecretTextTest, IsItsOwnAfterACopyAndAMove) {
  SecretText first("first");
  SecretText second = first;
  EXPECT_NE(first.view().data(), second.view().data());
  first.Clear();
  EXPECT_EQ(second, "first");
  first = second;
  second = SecretText("second");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(second, "second");
  SecretText& itself = first;
  first = itself;
  first = std::move(itself);
  EXPECT_EQ(first, "first");
  first = "";
  EXPECT_TRUE(first.empty());
}

TEST(SecretTextTest, WhatIsTakenIsGoneWhereItWas) {
  std::string text(100, 's');
  const std::string_view was = text;
  EXPECT_EQ(SecretText::Take(std::move(text)), std::string(100, 's'));
  EXPECT_EQ(was, std::string(100, '\0'));
}

// Of all sizes and in any order, each keeps what is its own.
TEST(SecretTextTest, ManyShareTheirPagesAndNoneItsBytes) {
  constexpr std::size_t kMany = 3000;
  const auto text_of = [](std::size_t number) {
    return std::string(1 + number % 700, static_cast<char>('a' + number % 26));
  };
  std::vector<SecretText> secrets;
  for (std::size_t number = 0; number < kMany; ++number) secrets.emplace_back(text_of(number));
  for (std::size_t number = 0; number < kMany; number += 2) secrets[number].Clear();
  for (std::size_t number = 0; number < kMany; number += 4) secrets[number] = text_of(number + 13);
  for (std::size_t number = 0; number < kMany; ++number) {
    const std::string wanted = number % 2 == 1   ? text_of(number)
                               : number % 4 == 0 ? text_of(number + 13)
                                                 : "";
    ASSERT_EQ(secrets[number], wanted) << number;
  }
}

TEST(SecretTextTest, WhereNoMemoryMayBeLockedItIsThereAllTheSameAndTold) {
  const int status = test::InChild([] {
    const struct rlimit none = {0, 0};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0) return 90;
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 91;  // root may always
    const SecretText secret(std::string(std::size_t{65} << 10U, 's'));
    return SecretText::AllAreLocked() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

// The kernel's own word: a process with a secret dies, and its core is searched.
TEST(SecretTextTest, ACoreDumpDoesNotHaveIt) {
  const std::string pattern = ReadText("/proc/sys/kernel/core_pattern");
  TASKCELL_REQUIRE(pattern.find_first_of("|/%") == std::string::npos,
                   Text("cores go elsewhere here: kernel.core_pattern is ", Trim(pattern)));
  test::TempDirectory directory("core");
  const pid_t child = ::fork();
  if (child == 0) {
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_CORE, &all) != 0 || ::chdir(directory.path().c_str()) != 0 ||
        ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
      ::_exit(90);
    // Made of parts, so that neither stands in the program's own constants.
    const std::string end = std::to_string(::getpid());
    const std::string ordinary = "ordinary-canary-" + end;
    std::string text = "secret-canary-" + end;
    const SecretText secret = SecretText::Take(std::move(text));
    if (ordinary.size() + secret.size() == 0) ::_exit(91);
    (void)::signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WCOREDUMP(status)) << "wait status " << status;
  std::string core;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    core += ReadText(entry.path());
  const std::string end = std::to_string(child);
  EXPECT_NE(core.find("ordinary-canary-" + end), std::string::npos) << "control";
  EXPECT_EQ(core.find("secret-canary-" + end), std::string::npos);
}

TEST(WipedMemoryTest, WhatGetsAnotherSizeKeepsItsBytes) {
  constexpr std::size_t kBytes = 4096;
  auto* memory = static_cast<char*>(std::malloc(kBytes));  // NOLINT(cppcoreguidelines-no-malloc)
  std::fill(memory, memory + kBytes, 'w');
  auto* longer = static_cast<char*>(ReallocateWiped(memory, 3 * kBytes));
  EXPECT_EQ(std::count(longer, longer + kBytes, 'w'), static_cast<std::ptrdiff_t>(kBytes));
  auto* shorter = static_cast<char*>(ReallocateWiped(longer, 10));
  EXPECT_EQ(std::string(shorter, 10), std::string(10, 'w'));
  EXPECT_EQ(ReallocateWiped(shorter, 0), nullptr);
  FreeWiped(nullptr);
}

}  // namespace
}  // namespace taskcell::sys
