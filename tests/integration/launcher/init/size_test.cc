#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/integration/launcher/init/init_cell.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

constexpr uint64_t kMebibyte = 1U << 20U;
// What is promised holds for the program as it is delivered; one that is not made for size, or
// traps on undefined behaviour, has half as much code again.
#if defined(AS_DELIVERED)
constexpr uint64_t kMaxResident = kMebibyte;
#else
constexpr uint64_t kMaxResident = kMebibyte + kMebibyte / 2;
#endif

// The kilobytes of a line like "VmRSS:\t     512 kB".
std::optional<uint64_t> StatusKilobytes(pid_t pid, std::string_view name) {
  Result<std::string> status = sys::ReadFile(AT_FDCWD, Text("/proc/", pid, "/status"), 16384);
  if (!status.ok()) return std::nullopt;
  for (std::string_view line : Split(status.value(), '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 3 && words[0] == Text(name, ":")) return ParseUnsigned(words[1]);
  }
  return std::nullopt;
}

TEST(InitSizeTest, AnInitThatWaitsIsSmall) {
  InitCell cell;
  (void)cell.Attestation();
  std::optional<uint64_t> resident = StatusKilobytes(cell.pid(), "VmRSS");
  ASSERT_TRUE(resident);
  RecordProperty("resident_kB", static_cast<int>(*resident));
  EXPECT_GT(*resident, 0U);
  EXPECT_LT(*resident * 1024, kMaxResident);
}

TEST(InitSizeTest, RelayingDoesNotMakeItGrow) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("head -c 50000000 /dev/zero; echo end >&2; sleep 1000")));
  std::size_t bytes = 0;
  while (std::optional<cell::FrameReader::Message> message = cell.Next()) {
    if (message->type == cell::FrameType::kStderr) break;
    bytes += message->payload.size();
  }
  // The two streams may overtake each other; what is left of the first follows.
  while (bytes < 50'000'000) {
    std::optional<cell::FrameReader::Message> message = cell.Next();
    ASSERT_TRUE(message);
    bytes += message->payload.size();
  }
  std::optional<uint64_t> resident = StatusKilobytes(cell.pid(), "VmRSS");
  ASSERT_TRUE(resident);
  RecordProperty("resident_kB", static_cast<int>(*resident));
  EXPECT_LT(*resident * 1024, kMaxResident);
}

#if defined(AS_DELIVERED)
TEST(InitSizeTest, TheProgramHasLessThanAMebibyteOnDisk) {
  struct stat info = {};
  ASSERT_EQ(::stat(Program("taskcell-init").c_str(), &info), 0);
  RecordProperty("bytes", static_cast<int>(info.st_size));
  EXPECT_LT(static_cast<uint64_t>(info.st_size), kMebibyte);
}
#endif

}  // namespace
}  // namespace taskcell::test
