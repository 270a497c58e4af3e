// Names of files, and an environment, that are made to mislead whoever handles them.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/json_value.h"
#include "launcher/base/text.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HostileWordsTest : public LaunchTest {};

const std::string kNames[] = {
    "two\nlines",
    "carriage\rreturn",
    "\x1b[2J\x1b]0;title\x07",
    "in one character \xc2\x9b"
    "2J\xc2\x9d"
    "0;title\xc2\x9c",
    "not \xff\xfe utf-8",
    "over\xc0\xaflong",
    "-rf",
    "--help",
    " ",
    "\\040",
    "\\",
    "'\"$(touch canary)`touch canary`",
    "%s%n",
    "* - tmpfs none rw",
    std::string(255, 'n'),
};

// By the mount table and back, and into the report.
TEST_F(HostileWordsTest, AFileOfAnyNameIsMountedAtAPlaceOfThatName) {
  for (const std::string& name : kNames) {
    SCOPED_TRACE(testing::PrintToString(name));
    std::string file = MakeFile("files/" + name, "content");
    std::string directory = scratch_ + "/writable/" + name;
    fs::create_directories(directory);
    ASSERT_EQ(::chown(directory.c_str(), user_->uid, user_->gid), 0);
    std::string report = scratch_ + "/report.json";
    Outcome ran = Launch({"--ro=" + scratch_ + "/files:/files", "--ro=" + file + ":/in/" + name,
                          "--bind-rw=" + directory + ":/rw/" + name, "--tmpfs=/t/" + name + ":1M",
                          "--report=" + report, "--", "/usr/bin/python3", "-c",
                          "import os, sys\n"
                          "name = os.fsencode(sys.argv[1])\n"
                          "print(open(b'/in/' + name).read(), os.listdir(b'/in') == [name],\n"
                          "      name in os.listdir(b'/files'))\n"
                          "open(b'/rw/' + name + b'/' + name, 'w').write('written')\n"
                          "open(b'/t/' + name + b'/x', 'w').write('x')\n",
                          name});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "content True True\n");
    EXPECT_EQ(ran.err, "");
    EXPECT_TRUE(fs::exists(directory + "/" + name));
    std::ifstream written(report);
    std::string text{std::istreambuf_iterator<char>(written), {}};
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_EQ(text.find_first_of("\x1b\x07\xff"), std::string::npos);
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
    EXPECT_TRUE(ParseJson(text).ok()) << text;
  }
  EXPECT_FALSE(fs::exists(scratch_ + "/canary"));
}

// What such a name comes to in a message is one line that a terminal can show.
TEST_F(HostileWordsTest, ARefusedFileOfAnyNameIsToldInOneLine) {
  for (const std::string& name : kNames) {
    SCOPED_TRACE(testing::PrintToString(name));
    fs::create_directories(scratch_ + "/tree");
    std::string fifo = scratch_ + "/tree/" + name;
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
    Outcome ran = Launch({"--ro=" + scratch_ + "/tree:/tree", "--", "/bin/true"});
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, HasSubstr("is a FIFO"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
    EXPECT_EQ(ran.err.find_first_of("\x1b\x07\xff\r"), std::string::npos);
    EXPECT_EQ(ran.err.find("\xc2\x9b"), std::string::npos);
    ASSERT_EQ(::unlink(fifo.c_str()), 0);
  }
}

// The programs that a launch itself starts are found by their own paths, and start from nothing.
TEST_F(HostileWordsTest, NothingOfTheEnvironmentChoosesWhatALaunchStarts) {
  TASKCELL_REQUIRE(::access("/usr/bin/newuidmap", X_OK) == 0, "needs newuidmap (package uidmap)");
  const std::string canary = scratch_ + "/canary";
  for (const char* name :
       {"newuidmap", "newgidmap", "taskcell-init", "systemd-run", "true", "sh"}) {
    std::string program = MakeFile(std::string("bin/") + name, "#!/bin/sh\n>" + canary + "\n");
    ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  }
  std::string startup = MakeFile("startup", ">" + canary + "\n");
  ASSERT_EQ(::chmod((scratch_ + "/bin").c_str(), 0755), 0);
  RunOptions options;
  options.user = user_;
  options.environment = {"PATH=" + scratch_ + "/bin:.",
                         "BASH_ENV=" + startup,
                         "ENV=" + startup,
                         "LD_PRELOAD=" + scratch_ + "/none.so",
                         "LD_AUDIT=" + scratch_ + "/none.so",
                         "GCONV_PATH=" + scratch_,
                         "LOCPATH=" + scratch_,
                         "IFS=/",
                         "TMPDIR=" + scratch_,
                         "XDG_RUNTIME_DIR=/no/such/place"};
  options.directory = scratch_ + "/bin";
  for (const char* mode : {"--userns=subids", "--userns=own"}) {
    Outcome ran =
        Launch({mode, "--", "sh", "-c", "true; echo ran; echo ${BASH_ENV-none} $PATH"}, options);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "ran\nnone /usr/local/bin:/usr/bin:/bin\n");
    EXPECT_EQ(ran.err, "");
    EXPECT_FALSE(fs::exists(canary)) << mode;
  }
  ASSERT_EQ(::chmod(scratch_.c_str(), 0777), 0);
  (void)test::Run({"/bin/sh", "-c", "newuidmap"}, options);  // control
  EXPECT_TRUE(fs::exists(canary));
}

}  // namespace
}  // namespace taskcell::test
