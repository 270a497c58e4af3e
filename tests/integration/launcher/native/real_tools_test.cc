// What ordinary programs make of the default filter's refusal of set-id bits.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RealToolsTest : public LaunchTest {
 protected:
  Outcome Shell(const std::string& script, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--timeout=50s", "--", "/bin/sh", "-c", script});
    return Launch(options);
  }
  Outcome Outside(const std::string& script) const {
    RunOptions options;
    options.user = user_;
    options.directory = scratch_;
    return test::Run({"/bin/sh", "-c", script}, options);
  }
};

constexpr char kCommit[] =
    "git init -q r && cd r && echo x >a && git add a && "
    "git -c user.email=a@b -c user.name=a commit -qm m && git clone -q . ../c && cat ../c/a";
constexpr char kShare[] = "git init -q --shared=group s";

TEST_F(RealToolsTest, GitWorksButForARepositoryThatAGroupShares) {
  TASKCELL_REQUIRE(::access("/usr/bin/git", X_OK) == 0, "needs git");
  Outcome ran = Shell(kCommit);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "x\n");
  Outcome shared = Shell(kShare);
  EXPECT_EQ(shared.status, 128);
  EXPECT_THAT(shared.err,
              AllOf(HasSubstr("fatal: Could not make"), HasSubstr("writable by group")));
  EXPECT_EQ(Outside(kShare).status, 0);  // control
}

// tar -p, cp -p and install say that they could not; tar and cp go on without the bits.
TEST_F(RealToolsTest, AnArchiveWithSetIdBitsIsUnpackedWithoutThem) {
  std::string program = MakeFile("tool", "#!/bin/sh\n");
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  ASSERT_EQ(Outside("cp tool t && chmod 4755 t && mkdir d && chmod 2775 d && tar cpf a.tar t d && "
                    "chmod 644 a.tar && mkdir out && tar -C out -xpf a.tar")
                .status,
            0);
  EXPECT_EQ(Outside("stat -c %a out/t out/d").out, "4755\n2775\n");  // control
  const std::vector<std::string> source = {"--ro=" + scratch_ + ":/src"};
  Outcome kept = Shell("tar -xpf /src/a.tar; echo $?; stat -c %a t", source);
  EXPECT_EQ(kept.out, "2\n755\n");
  EXPECT_THAT(kept.err, HasSubstr("t: Cannot change mode to rwsr-xr-x: Operation not permitted"));
  Outcome plain = Shell("tar -xf /src/a.tar && stat -c %a t d", source);
  EXPECT_EQ(plain.out, "755\n755\n") << plain.err;
  Outcome copied = Shell("cp /src/t t && stat -c %a t; cp -p /src/t t; echo $?", source);
  EXPECT_EQ(copied.out, "755\n1\n");
  EXPECT_THAT(copied.err, HasSubstr("cp: preserving permissions for"));
  Outcome installed = Shell("install -m 4755 /src/t t", source);
  EXPECT_EQ(installed.status, 1);
  EXPECT_THAT(installed.err, HasSubstr("install: cannot change permissions of"));
}

TEST_F(RealToolsTest, NpmPacksAndInstallsAProgram) {
  TASKCELL_REQUIRE(::access("/usr/bin/npm", X_OK) == 0, "needs npm");
  MakeFile("p/package.json", R"({"name":"p","version":"1.0.0","bin":{"p":"./p.js"}})");
  MakeFile("p/p.js", "#!/usr/bin/env node\nconsole.log('ran')\n");
  Outcome ran = Shell(
      "cp -r /src p && cd p && npm pack --silent && mkdir ../q && cd ../q && "
      "npm install --silent --offline --no-audit --no-fund ../p/p-1.0.0.tgz && "
      "node_modules/.bin/p",
      {"--ro=" + scratch_ + "/p:/src"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "p-1.0.0.tgz\nran\n");
}

}  // namespace
}  // namespace taskcell::test
