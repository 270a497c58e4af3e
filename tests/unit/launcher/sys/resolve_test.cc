// How names resolve below a directory: tables of known cases, those of the kernel's own selftests
// (tools/testing/selftests/openat2/resolve_test.c) and of libpathrs by the names they have there.
// All hold for openat2(2) and for the walk that stands in for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "launcher/sys/file.h"
#include "launcher/sys/path_walk.h"
#include "tests/support/temp_directory.h"
#include "tests/support/without_openat2.h"
#include "tests/unit/launcher/openat2_layout.h"

namespace taskcell::sys {
namespace {

constexpr uint64_t kBeneath = RESOLVE_BENEATH;
constexpr uint64_t kInRoot = RESOLVE_IN_ROOT;
constexpr uint64_t kNoXdev = RESOLVE_NO_XDEV;
constexpr uint64_t kNoMagic = RESOLVE_NO_MAGICLINKS;
constexpr uint64_t kNoLinks = RESOLVE_NO_SYMLINKS;
constexpr int kLinkItself = O_PATH | O_NOFOLLOW;

namespace fs = std::filesystem;
using Opener = Result<UniqueFd> (*)(int, const std::string&, int, uint64_t, mode_t);

struct Case {
  std::string path;
  int err = 0;     // or 0: then what is opened is
  std::string at;  // this, a path from the test's directory on (no look at it where it is "-")
  int flags = O_PATH;
  int walk_err = -1;  // where the walk is stricter
};

// All cases of one group.
struct Group {
  std::string name;
  uint64_t resolve;
  std::string from;  // the directory to begin in
};

class ResolveTest : public testing::Test, protected test::TempDirectory {
 protected:
  ResolveTest() : TempDirectory("resolve-test") {}

  std::string Absolute(const std::string& path) const { return path[0] == '/' ? path : At(path); }

  // Empty where the case comes out right.
  std::string WrongIn(const Group& group, const Case& row, Opener opener, bool is_walk) const {
    const std::string told =
        Text(group.name, " '", row.path, "' (flags ", row.flags, is_walk ? ", walk): " : "): ");
    UniqueFd from = Open(Absolute(group.from), O_PATH | O_DIRECTORY).value();
    Result<UniqueFd> opened = opener(from.get(), row.path, row.flags, group.resolve,
                                     (row.flags & O_CREAT) != 0 ? 0600 : 0);
    const int err = opened.ok() ? 0 : opened.error().err;
    const int wanted = is_walk && row.walk_err >= 0 ? row.walk_err : row.err;
    if (err != wanted)
      return Text(told, err, " instead of ", wanted, opened.ok() ? "" : "; " + opened.error().text);
    if (err != 0 || row.at == "-") return {};
    const struct stat found = Stat(opened->get()).value();
    Result<struct stat> right = StatAt(AT_FDCWD, Absolute(row.at));
    if (right.ok() && found.st_ino == right->st_ino && found.st_dev == right->st_dev) return {};
    return Text(told, "not what lies at ", row.at);
  }
  void Expect(const Group& group, const std::vector<Case>& rows) const {
    for (const Case& row : rows) {
      EXPECT_EQ(WrongIn(group, row, OpenAt2, test::IsWithoutOpenat2()), "");
      if ((row.flags & O_CREAT) != 0 && row.err == 0) {
        ASSERT_EQ(::unlink(Absolute(row.at).c_str()), 0) << row.path;
      }
      EXPECT_EQ(WrongIn(group, row, WalkPath, true), "");
    }
  }
};

TEST_F(ResolveTest, KernelSelftestBeneath) {
  test::MakeOpenat2Layout(At("tree"));
  std::vector<Case> rows = {{".", 0, "tree"},
                            {"root", 0, "tree/root"},
                            {"etc", 0, "tree/etc"},
                            {"etc/passwd", 0, "tree/etc/passwd"},
                            {"relsym", 0, "tree/etc/passwd"},
                            {"cheeky/passwd", 0, "tree/etc/passwd"}};
  for (const char* path :
       {"/", "cheeky/absself", "abscheeky/absself", "..", "../root/", "cheeky/self",
        "abscheeky/self", "cheeky/garbageself", "abscheeky/garbageself", "abscheeky/passwd",
        "abssym", "/etc/passwd", "cheeky/abspasswd", "abscheeky/abspasswd", "cheeky/dotdotlink",
        "abscheeky/dotdotlink", "cheeky/garbagelink", "abscheeky/garbagelink"})
    rows.push_back({path, EXDEV, ""});
  Expect({"beneath", kBeneath, "tree"}, rows);
}

TEST_F(ResolveTest, KernelSelftestInRoot) {
  test::MakeOpenat2Layout(At("tree"));
  std::vector<Case> rows = {{"root", 0, "tree/root"}, {"etc", 0, "tree/etc"}};
  for (const char* path : {".", "..", "/", "cheeky/absself", "abscheeky/absself"})
    rows.push_back({path, 0, "tree"});
  for (const char* path :
       {"../root/", "cheeky/self", "abscheeky/self", "cheeky/garbageself", "abscheeky/garbageself"})
    rows.push_back({path, 0, "tree/root"});
  for (const char* path :
       {"etc/passwd", "relsym", "cheeky/passwd", "abscheeky/passwd", "abssym", "/etc/passwd",
        "cheeky/abspasswd", "abscheeky/abspasswd", "cheeky/dotdotlink", "abscheeky/dotdotlink",
        "cheeky/garbagelink", "abscheeky/garbagelink"})
    rows.push_back({path, 0, "tree/etc/passwd"});
  Expect({"in_root", kInRoot, "tree"}, rows);
  Expect({"in_root, no_magiclinks", kInRoot | kNoMagic, "tree"}, rows);
}

TEST_F(ResolveTest, KernelSelftestInRootCreates) {
  test::MakeOpenat2Layout(At("tree"));
  const int create = O_CREAT | O_RDWR;
  const std::vector<Case> rows = {
      {"newfile1", 0, "tree/newfile1", create},    {"/newfile2", 0, "tree/newfile2", create},
      {"/creatlink", 0, "tree/newfile3", create},  {"/creatlink", ELOOP, "", create | O_NOFOLLOW},
      {"/creatlink", EEXIST, "", create | O_EXCL}, {"etc/passwd", EEXIST, "", create | O_EXCL}};
  Expect({"in_root", kInRoot, "tree"}, rows);
  // What exists is opened, and stays.
  UniqueFd tree = Open(At("tree"), O_PATH | O_DIRECTORY).value();
  for (const Opener opener : {Opener(OpenAt2), Opener(WalkPath)}) {
    UniqueFd same = opener(tree.get(), "etc/passwd", create, kInRoot, 0600).value();
    EXPECT_EQ(ReadAll(same.get(), 100).value(), "the tree's own");
  }
}

TEST_F(ResolveTest, KernelSelftestNoXdev) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  const int status = test::InChild([this] {
    test::MakeOpenat2Layout(At("tree"));
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return 91;
    const std::string mnt = At("tree/mnt");
    if (::mount("tmpfs", mnt.c_str(), "tmpfs", 0, "") != 0) return 92;
    if (::symlink("../mnt/", (mnt + "/self").c_str()) != 0 ||
        ::symlink("/mnt/", (mnt + "/absself").c_str()) != 0)
      return 93;
    Expect({"no_xdev", kNoXdev, "tree"}, {{"mnt", EXDEV, ""},
                                          {"mnt/", EXDEV, ""},
                                          {"mnt/.", EXDEV, ""},
                                          {"etc/passwd", 0, "tree/etc/passwd"},
                                          {"relsym", 0, "tree/etc/passwd"},
                                          // A link in procfs: another mount before it is followed.
                                          {"procexe", EXDEV, ""}});
    Expect({"no_xdev from the mount", kNoXdev, "tree/mnt"},
           {{".", 0, "tree/mnt"},
            {"..", EXDEV, ""},
            {"../mnt", EXDEV, ""},
            {"self", EXDEV, ""},
            {"self", 0, "tree/mnt/self", kLinkItself},
            {"absself", EXDEV, ""},
            {"/", 0, "/"},
            {"/proc/1", EXDEV, ""}});
    Expect({"no_xdev in procfs", kNoXdev, "/proc"}, {{".", 0, "/proc"},
                                                     {"self/status", 0, "-"},
                                                     {"self/root", EXDEV, ""},
                                                     {"self/cwd", EXDEV, ""}});
    Expect({"beneath, no_xdev", kResolveBeneath | kNoXdev, "tree"},
           {{"mnt", EXDEV, ""}, {"mnt/self", EXDEV, ""}, {"etc", 0, "tree/etc"}});
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(ResolveTest, KernelSelftestNoMagiclinks) {
  test::MakeOpenat2Layout(At("tree"));
  Expect({"no_magiclinks", kNoMagic, "tree"}, {{"relsym", 0, "tree/etc/passwd"},
                                               {"abssym", 0, "/etc/passwd"},
                                               {"procexe", ELOOP, ""},
                                               {"procexe", 0, "tree/procexe", kLinkItself},
                                               {"/proc/self/exe", ELOOP, ""},
                                               {"/proc/self/exe", 0, "-", kLinkItself},
                                               {"/proc/self/status", 0, "-"},
                                               {"procroot/etc", ELOOP, ""},
                                               {"procroot/etc", ELOOP, "", kLinkItself},
                                               {"/proc/self/root/etc", ELOOP, ""},
                                               {"/proc/self/root/etc", ELOOP, "", kLinkItself},
                                               {"/proc/mounts", 0, "-"}});
  // Not forbidden, but led out of by them.
  Expect({"beneath", kBeneath, "/proc"}, {{"self/root", EXDEV, ""}, {"self/cwd", EXDEV, ""}});
}

TEST_F(ResolveTest, KernelSelftestNoSymlinks) {
  test::MakeOpenat2Layout(At("tree"));
  std::vector<Case> rows = {{".", 0, "tree"},
                            {"root", 0, "tree/root"},
                            {"etc", 0, "tree/etc"},
                            {"etc/passwd", 0, "tree/etc/passwd"},
                            {"/proc/self/status", ELOOP, ""}};
  for (const char* path :
       {"relsym", "reletc/passwd", "reletc/", "abssym", "absetc/passwd", "cheeky/garbagelink",
        "abscheeky/garbagelink", "abscheeky/absself", "procexe", "procroot/etc"})
    rows.push_back({path, ELOOP, ""});
  for (const char* path : {"relsym", "abssym", "cheeky/garbagelink"})
    rows.push_back({path, 0, Text("tree/", path), kLinkItself});
  for (const char* path : {"abscheeky/garbagelink", "abscheeky/absself", "reletc/"})
    rows.push_back({path, ELOOP, "", kLinkItself});
  rows.push_back({"relsym", ELOOP, "", O_RDONLY | O_NOFOLLOW});
  Expect({"no_symlinks", kNoLinks, "tree"}, rows);
}

class PathrsTest : public ResolveTest {
 protected:
  PathrsTest() {
    for (const char* name :
         {"a", "b/c/d/e/f", "target", "c", "link1", "link2", "link3", "loop", "dangling/b",
          "dangling/d", "dangling/f", "dangling/h/i/j", "dangling-file/h/i/j"})
      fs::create_directories(At(Text("tree/", name)));
    Put("tree/b/c/file", "x");
    Put("tree/dangling-file/h/i/j/file", "x");
    const std::vector<std::pair<const char*, const char*>> links = {
        {"e", "/b/c/d/e"},
        {"b-file", "b/c/file"},
        {"root-link1", "/"},
        {"root-link2", "/.."},
        {"root-link3", "/../../../../.."},
        {"escape-link1", "../../../../../../../../../../target"},
        {"escape-link2", "/../../../../../../../../../../target"},
        {"a-fake1", "a/fake"},
        {"a-fake2", "a/fake/foo/bar/.."},
        {"a-fake3", "a/fake/../../b"},
        {"c/a-fake1", "/a/fake"},
        {"c/a-fake2", "/a/fake/foo/bar/.."},
        {"c/a-fake3", "/a/fake/../../b"},
        {"link1/target_abs", "/target"},
        {"link1/target_rel", "../target"},
        {"link2/link1_abs", "/link1"},
        {"link2/link1_rel", "../link1"},
        {"link3/target_abs", "/link2/link1_rel/target_rel"},
        {"link3/target_rel", "../link2/link1_rel/target_rel"},
        {"link3/deep_dangling1", "../link2/link1_rel/target_rel/nonexist"},
        {"link3/deep_dangling2", "../link2/link1_rel/target_rel/nonexist"},
        {"dangling/a", "b/c"},
        {"dangling/b/c", "../c"},
        {"dangling/c", "d/e"},
        {"dangling/d/e", "../e"},
        {"dangling/e", "f/../g"},
        {"dangling/g", "h/i/j/nonexistent"},
        {"dangling-file/g", "h/i/j/file/foo"},
        {"loop/basic-loop1", "basic-loop1"},
        {"loop/basic-loop2", "/loop/basic-loop2"},
        {"loop/basic-loop3", "../loop/basic-loop3"}};
    for (const auto& [name, target] : links) Link(target, Text("tree/", name));
    EXPECT_EQ(::mkfifo(At("tree/b/fifo").c_str(), 0600), 0);
    EXPECT_EQ(::mknod(At("tree/b/sock").c_str(), S_IFSOCK | 0600, 0), 0);
  }
};

TEST_F(PathrsTest, Complete) {
  const std::vector<Case> rows = {
      {"/", 0, "tree"},                    // complete_root1
      {"/../../../../../..", 0, "tree"},   // complete_root2
      {"root-link1", 0, "tree"},           // complete_root_link1
      {"root-link2", 0, "tree"},           // complete_root_link2
      {"root-link3", 0, "tree"},           // complete_root_link3
      {"a", 0, "tree/a"},                  // complete_dir1
      {"b/c/d/e/f", 0, "tree/b/c/d/e/f"},  // complete_dir2
      {"b///././c////.//d/./././///e////.//./f//././././", 0, "tree/b/c/d/e/f"},  // complete_dir3
      {"b/c/file", 0, "tree/b/c/file"},                                           // complete_file
      {"b-file", 0, "tree/b/c/file"},  // complete_file_link
      {"b/fifo", 0, "tree/b/fifo"},    // complete_fifo
      {"b/sock", 0, "tree/b/sock"},    // complete_sock
      {"e/f", 0, "tree/b/c/d/e/f"},
      {"escape-link1", 0, "tree/target"},
      {"escape-link2", 0, "tree/target"}};
  Expect({"complete", kInRoot | kNoMagic, "tree"}, rows);
}

TEST_F(PathrsTest, NotThere) {
  Expect({"partial", kInRoot | kNoMagic, "tree"},
         {{"a/b/c/d", ENOENT, ""},           // partial_dir_basic
          {"a/foo/../bar/baz", ENOENT, ""},  // partial_dir_dotdot
          {"b/c/file/..", ENOTDIR, ""},      // partial_nondir_dotdot
          {"b/c/file/", ENOTDIR, ""},        // partial_nondir_slash
          {"b/c/file/.", ENOTDIR, ""},       // partial_nondir_dot
          {"b-file/", ENOTDIR, ""},          // partial_nondir_symlink_slash
          {"b-file/.", ENOTDIR, ""},         // partial_nondir_symlink_dot
          {"b-file/..", ENOTDIR, ""},        // partial_nondir_symlink_dotdot
          {"b/fifo/x", ENOTDIR, ""},
          {"b/sock/..", ENOTDIR, ""},
          {"a-fake1", ENOENT, ""},                   // dangling1_inroot_trailing
          {"a-fake1/foo", ENOENT, ""},               // dangling1_inroot_partial
          {"a-fake2/foo", ENOENT, ""},               // dangling2_inroot_partial
          {"a-fake3", ENOENT, ""},                   // dangling3_inroot_trailing
          {"c/a-fake1", ENOENT, ""},                 // dangling1_sub_trailing
          {"c/a-fake2/foo", ENOENT, ""},             // dangling2_sub_partial
          {"c/a-fake3/foo", ENOENT, ""},             // dangling3_sub_partial
          {"link3/deep_dangling1/foo", ENOENT, ""},  // dangling_tricky1_partial
          {"link3/deep_dangling2", ENOENT, ""},      // dangling_tricky2_trailing
          {"dangling/a", ENOENT, ""},                // deep_dangling1
          {"dangling/b/c", ENOENT, ""},              // deep_dangling2
          {"dangling/c", ENOENT, ""},                // deep_dangling3
          {"dangling/d/e", ENOENT, ""},              // deep_dangling4
          {"dangling/e", ENOENT, ""},                // deep_dangling5
          {"dangling/g", ENOENT, ""},                // deep_dangling6
          {"dangling-file/g", ENOTDIR, ""},          // deep_dangling_fileasdir6
          {"loop/basic-loop1", ELOOP, ""},           // loop_basic1
          {"loop/basic-loop2", ELOOP, ""},           // loop_basic2
          {"loop/basic-loop3", ELOOP, ""},           // loop_basic3
          {"loop/basic-loop1", 0, "tree/loop/basic-loop1", kLinkItself},
          {"loop/basic-loop1/", ELOOP, "", kLinkItself},
          {"", ENOENT, ""}});
}

TEST_F(PathrsTest, NonLexical) {
  std::vector<Case> rows;
  for (const char* way : {"link1/target_abs", "link1/target_rel", "link2/link1_abs/target_abs",
                          "link2/link1_abs/target_rel", "link2/link1_rel/target_abs",
                          "link2/link1_rel/target_rel", "link3/target_abs", "link3/target_rel",
                          "link2/link1_abs/../target", "link2/link1_rel/../target"}) {
    rows.push_back({way, 0, "tree/target"});
    rows.push_back({Text(way, "/"), 0, "tree/target"});
    rows.push_back({Text(way, "/../target"), 0, "tree/target"});
    rows.push_back({Text(way, "/.."), 0, "tree"});
    rows.push_back({Text(way, "/foo"), ENOENT, ""});
    rows.push_back({Text(way, "/../target/foo/bar/../baz"), ENOENT, ""});
  }
  Expect({"nonlexical", kInRoot | kNoMagic, "tree"}, rows);
}

TEST_F(PathrsTest, WithoutLinks) {
  Expect({"nosym", kInRoot | kNoLinks, "tree"},
         {{"/", 0, "tree"},
          {"b/c/d/e/f", 0, "tree/b/c/d/e/f"},
          {"root-link1", ELOOP, ""},
          {"b-file", ELOOP, ""},
          {"e/f", ELOOP, ""},
          {"link2/link1_abs/target_abs", ELOOP, ""},
          {"dangling/a", ELOOP, ""},
          {"loop/basic-loop1", ELOOP, ""},
          {"b-file", 0, "tree/b-file", kLinkItself},  // symlink_nofollow
          {"e/f", ELOOP, "", kLinkItself},
          {"b-file", ENOTDIR, "", kLinkItself | O_DIRECTORY}});
}

TEST_F(PathrsTest, ProtectedSymlinks) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to give a link away");
  constexpr uid_t kSomebody = 12345;
  fs::create_directories(At("tree/shared"));
  ASSERT_EQ(::chmod(At("tree/shared").c_str(), 01777), 0);
  Link("../b/c/file", "tree/shared/own");
  Link("../b/c/file", "tree/shared/foreign");
  ASSERT_EQ(::lchown(At("tree/shared/foreign").c_str(), kSomebody, kSomebody), 0);
  const Group group = {"protected_symlinks", kInRoot, "tree"};
  EXPECT_EQ(WrongIn(group, {"shared/own", 0, "tree/b/c/file"}, WalkPath, true), "");
  EXPECT_EQ(WrongIn(group, {"shared/foreign", EACCES, ""}, WalkPath, true), "");
  EXPECT_EQ(
      WrongIn(group, {"shared/foreign", 0, "tree/shared/foreign", kLinkItself}, WalkPath, true),
      "");
  ASSERT_EQ(::chown(At("tree/shared").c_str(), kSomebody, kSomebody), 0);
  EXPECT_EQ(WrongIn(group, {"shared/foreign", 0, "tree/b/c/file"}, WalkPath, true), "")
      << "of the directory's owner";
}

TEST_F(PathrsTest, NosymfollowMount) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to mount");
  const int status = test::InChild([this] {
    constexpr unsigned long kNoSymfollow = 256;  // MS_NOSYMFOLLOW
    const std::string at = At("tree");
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(at.c_str(), at.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0 ||
        ::mount(nullptr, at.c_str(), nullptr, MS_BIND | MS_REMOUNT | kNoSymfollow, nullptr) != 0)
      return 91;
    Expect({"nosymfollow", kInRoot, "tree"}, {{"b-file", ELOOP, ""},
                                              {"e/f", ELOOP, ""},
                                              {"b/c/file", 0, "tree/b/c/file"},
                                              {"b-file", 0, "tree/b-file", kLinkItself}});
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(PathrsTest, OpensWhatWasAskedFor) {
  UniqueFd tree = Open(At("tree"), O_PATH | O_DIRECTORY).value();
  for (const Opener opener : {Opener(OpenAt2), Opener(WalkPath)}) {
    UniqueFd file = opener(tree.get(), "b-file", O_RDONLY, kInRoot, 0).value();
    EXPECT_EQ(ReadAll(file.get(), 10).value(), "x");
    UniqueFd here = opener(tree.get(), ".", O_RDONLY | O_DIRECTORY, kResolveBeneath, 0).value();
    EXPECT_FALSE(ListDirectory(here.get(), 100)->empty());
    EXPECT_EQ(
        opener(tree.get(), "b/c/file", O_RDONLY | O_DIRECTORY, kResolveBeneath, 0).error().err,
        ENOTDIR);
    EXPECT_EQ(opener(tree.get(), "a", O_RDWR, kResolveBeneath, 0).error().err, EISDIR);
    EXPECT_EQ(::fcntl(file.get(), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(OpenAt2(tree.get(), "b/c/file", O_RDWR | O_TRUNC, kResolveBeneath).error().err, EINVAL);
  EXPECT_EQ(fs::file_size(At("tree/b/c/file")), 1U);
}

// A directory that is moved on the way up leads nowhere else: the way back is the way it came.
TEST_F(PathrsTest, TheWayUpIsTheWayItCame) {
  UniqueFd inner = Open(At("tree/b/c"), O_PATH | O_DIRECTORY).value();
  fs::rename(At("tree/b/c"), At("moved"));
  for (const Opener opener : {Opener(OpenAt2), Opener(WalkPath)})
    EXPECT_EQ(opener(inner.get(), "d/../../..", O_PATH, kResolveBeneath, 0).error().err, EXDEV);
}

}  // namespace
}  // namespace taskcell::sys
