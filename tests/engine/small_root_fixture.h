#pragma once

#include "tests/engine/task_fixture.h"

namespace taskcell::test {

// A home like TaskFixture's, with the small root of make_small_root.sh, which has a shell.
class SmallRootFixture : public TaskFixture {
 protected:
  // Makes it in the directory At("root").
  void MakeSmallRoot() const;
  // Loads an image of its files in the place of the fixture's empty one.
  void MakeSmallRootImage() const;
};

}  // namespace taskcell::test
