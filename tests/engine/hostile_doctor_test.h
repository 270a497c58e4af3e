#pragma once

#include <string>
#include <vector>

#include "tests/engine/script_fixture.h"

namespace taskcell::test {

// `taskcell doctor --hostile` in cells of the engine that a home's tasks use.
class HostileDoctorTest : public ScriptFixture {
 protected:
  bool HasRuns() const;
  // What it lays out beside the home for its attempts to reach.
  std::vector<std::string> LaidOut() const;
};

}  // namespace taskcell::test
