#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/task_fixture.h"

namespace taskcell::test {

// What a trap must come to.
struct TrapEnd {
  std::string code;
  std::string reply = {};  // of a success
  std::string part = {};   // of the message
};

// Runs tasks in which an AI's program, or its provider, plays a trap.
class TrapFixture : public TaskFixture {
 protected:
  // Forgets what earlier traps left in the home's logs and records.
  void ClearRecords() const;
  // The lines of the gateway's log: one for each failure.
  std::vector<std::string> Failures() const;
  // Checks the answer of a task that ran in a verified cell, since ClearRecords, its log, and that
  // a violation and nothing else was audited as one.
  void Expect(const Json& answer, const TrapEnd& end) const;
};

// The same with a stand-in in the place of the AI's program, in a native cell.
class StandInFixture : public TrapFixture {
 protected:
  void SetUp() override;
  // A home whose agent has this runtime, an account of `provider`, and a stand-in that does as
  // `body` says (see tests/support/make_small_root.sh).
  void MakeHome(std::string_view runtime, std::string_view provider, std::string_view body) const;
  // The answer of a task.
  Json RunIn(const gateway::ProviderProcess& provider) const;
  // The exit status of doctor: 1 where a task would be refused.
  int DoctorIn(const gateway::ProviderProcess& provider) const;

 private:
  Outcome Taskcell(std::vector<std::string> arguments,
                   const gateway::ProviderProcess& provider) const;
};

}  // namespace taskcell::test
