#include "launcher/base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "launcher/base/defer.h"

namespace taskcell {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Error(Kind::kUsage, "odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  int half = TRY(Half(number).With("first half"));
  return TRY(Half(half).With("second half"));
}

TEST(ResultTest, TryYieldsTheValue) { EXPECT_EQ(Quarter(12).value(), 3); }

TEST(ResultTest, TryReturnsTheErrorWithTheIntentOfTheStepThatFailed) {
  Result<int> result = Quarter(6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().text, "second half: odd");
  EXPECT_EQ(result.error().kind, Kind::kUsage);
}

TEST(ResultTest, MoveOnlyValuesTravel) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  EXPECT_EQ(*std::move(result).value(), 7);
}

TEST(ResultDeathTest, ReadingTheSideThatIsNotThereAborts) {
  Result<int> result = Error(Kind::kSystem, "no");
  EXPECT_DEATH((void)result.value(), "");
}

TEST(ErrorTest, CodeIsKept) {
  Error error =
      Error(Kind::kUnsupported, "memory").Coded("resource_limits_unenforced").With("launch");
  EXPECT_EQ(error.code, "resource_limits_unenforced");
  EXPECT_EQ(error.text, "launch: memory");
}

TEST(DeferTest, RunsOnceAtTheEndOfTheScope) {
  int runs = 0;
  {
    Defer count([&] { ++runs; });
    EXPECT_EQ(runs, 0);
  }
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace taskcell
