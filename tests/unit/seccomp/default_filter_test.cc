#include "seccomp/default_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "gtest/gtest.h"
#include "seccomp/evaluator.h"
#include "tests/unit/seccomp/table.h"

namespace taskcell::seccomp {
namespace {

std::span<const sock_filter> CodeOf(Architecture architecture) {
  Program program = DefaultFilter(architecture);
  return {program.code, program.length};
}

TEST(DefaultFilterTest, AnswersEveryRowOfTheTable) {
  std::string error;
  std::optional<std::vector<Row>> rows = ParseTable(ReadData("default.table"), error);
  ASSERT_TRUE(rows.has_value()) << error;
  for (const Row& row : *rows) {
    std::optional<Evaluation> seen = Evaluate(CodeOf(row.filter), row.call);
    ASSERT_TRUE(seen.has_value()) << row.text;
    EXPECT_EQ(seen->action, row.action) << row.text;
  }
}

TEST(DefaultFilterTest, TableCoversBothArchitecturesAndEveryAnswer) {
  std::string error;
  std::optional<std::vector<Row>> rows = ParseTable(ReadData("default.table"), error);
  ASSERT_TRUE(rows.has_value()) << error;
  std::map<Architecture, std::size_t> count;
  std::map<Architecture, std::set<uint32_t>> answers;
  for (const Row& row : *rows) {
    ++count[row.filter];
    answers[row.filter].insert(row.action);
  }
  for (Architecture each : {Architecture::kX86_64, Architecture::kAarch64}) {
    EXPECT_GE(count[each], 150U);
    EXPECT_EQ(answers[each].size(), 4U);  // allow, kill, EPERM, ENOSYS
  }
}

// A wrong row must not pass: the same rows with another answer all fail.
TEST(DefaultFilterTest, EvaluationTellsTheAnswersApart) {
  std::string error;
  std::optional<std::vector<Row>> rows =
      ParseTable("x86_64 mount -> allow\naarch64 read -> kill\nboth 470 -> errno EPERM\n", error);
  ASSERT_TRUE(rows.has_value()) << error;
  ASSERT_EQ(rows->size(), 4U);
  for (const Row& row : *rows) {
    std::optional<Evaluation> seen = Evaluate(CodeOf(row.filter), row.call);
    ASSERT_TRUE(seen.has_value());
    EXPECT_NE(seen->action, row.action) << row.text;
  }
}

TEST(DefaultFilterTest, EveryCallNumberIsAnsweredInFewInstructions) {
  for (Architecture architecture : {Architecture::kX86_64, Architecture::kAarch64}) {
    seccomp_data call = {};
    call.arch = architecture == Architecture::kX86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
    std::size_t worst = 0;
    for (int number = 0; number < 1000; ++number) {
      call.nr = number;
      std::optional<Evaluation> seen = Evaluate(CodeOf(architecture), call);
      ASSERT_TRUE(seen.has_value()) << number;
      worst = std::max(worst, seen->instructions);
    }
    EXPECT_LE(worst, 32U);
    EXPECT_LE(CodeOf(architecture).size(), 400U);
    RecordProperty("instructions", static_cast<int>(CodeOf(architecture).size()));
    RecordProperty("longest_path", static_cast<int>(worst));
  }
}

TEST(DefaultFilterTest, FilterOfThisMachineIsOneOfTheTwo) {
#ifdef __x86_64__
  EXPECT_EQ(DefaultFilter().code, DefaultFilter(Architecture::kX86_64).code);
#else
  EXPECT_EQ(DefaultFilter().code, DefaultFilter(Architecture::kAarch64).code);
#endif
  EXPECT_NE(DefaultFilter(Architecture::kX86_64).code, DefaultFilter(Architecture::kAarch64).code);
}

TEST(TableTest, MalformedLinesAreErrors) {
  std::string error;
  EXPECT_TRUE(ParseTable("x86_64 read 1 2 -> allow\n", error).has_value());
  for (const char* line :
       {"vax read -> allow", "x86_64 reed -> allow", "x86_64 read allow", "x86_64 read -> maybe",
        "x86_64 read 1 2 3 4 5 6 7 -> allow", "aarch64 open -> allow", "x86_64 read 1x -> allow"}) {
    EXPECT_FALSE(ParseTable(line, error).has_value()) << line;
  }
}

}  // namespace
}  // namespace taskcell::seccomp
