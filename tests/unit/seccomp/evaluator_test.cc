#include "seccomp/evaluator.h"

#include <vector>

#include "gtest/gtest.h"

namespace taskcell::seccomp {
namespace {

seccomp_data Call(int number) {
  seccomp_data call = {};
  call.nr = number;
  return call;
}

constexpr sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
constexpr sock_filter kLoadNumber = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);

TEST(EvaluatorTest, RunsJumpsAndCountsInstructions) {
  std::vector<sock_filter> code = {kLoadNumber, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 10, 1, 0),
                                   kAllow, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)};
  EXPECT_EQ(Evaluate(code, Call(9))->action, uint32_t{SECCOMP_RET_ALLOW});
  EXPECT_EQ(Evaluate(code, Call(10))->action, uint32_t{SECCOMP_RET_TRAP});
  EXPECT_EQ(Evaluate(code, Call(9))->instructions, 3U);
}

TEST(EvaluatorTest, ProgramsTheKernelWouldRefuseAnswerNothing) {
  std::vector<sock_filter> good = {kLoadNumber, kAllow};
  EXPECT_TRUE(Evaluate(good, Call(0)).has_value());
  EXPECT_FALSE(Evaluate({}, Call(0)).has_value());
  std::vector<sock_filter> no_end = {kLoadNumber};
  EXPECT_FALSE(Evaluate(no_end, Call(0)).has_value());
  std::vector<sock_filter> outside = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), kAllow};
  EXPECT_FALSE(Evaluate(outside, Call(0)).has_value());
  std::vector<sock_filter> last_word = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 60), kAllow};
  EXPECT_TRUE(Evaluate(last_word, Call(0)).has_value());
  std::vector<sock_filter> uneven = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), kAllow};
  EXPECT_FALSE(Evaluate(uneven, Call(0)).has_value());
  std::vector<sock_filter> far = {BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), kAllow};
  EXPECT_FALSE(Evaluate(far, Call(0)).has_value());
  std::vector<sock_filter> foreign = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), kAllow};
  EXPECT_FALSE(Evaluate(foreign, Call(0)).has_value());
}

}  // namespace
}  // namespace taskcell::seccomp
