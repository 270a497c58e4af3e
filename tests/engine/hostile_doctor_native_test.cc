#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/engine/hostile_doctor_test.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// It can fail: with a launcher that gives up what it should hold.
TEST_F(HostileDoctorTest, AWeakCellIsToldAndExitsWithOne) {
  const std::string programs = At("programs");
  fs::create_directory(programs);
  for (const char* name :
       {"taskcell", "taskcell-attacker", "taskcell-host", "taskcell-loop", "taskcell-init"})
    fs::copy_file(Program(name), fs::path(programs) / name);
  fs::copy_file(WEAK_LAUNCH, fs::path(programs) / "taskcell-launch");
  fs::copy_file(WEAK_INIT, fs::path(programs) / "taskcell-init",
                fs::copy_options::overwrite_existing);
  GiveHomeToUser();
  const Outcome run = test::Run({programs + "/taskcell", "doctor", "--hostile", "--attack", "files",
                                 "--attack", "privilege", "--home", Home()},
                                AsUser());
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("escaped"));
}

}  // namespace
}  // namespace taskcell::test
