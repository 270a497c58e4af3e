#include "launcher/cgroup/place.h"

#include <grp.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/unified.h"
#include "tests/support/fixture.h"
#include "tests/unit/launcher/cgroup/fake_tree.h"

namespace taskcell::cgroup {
namespace {

const std::vector<Controller> kAll(std::begin(kControllers), std::end(kControllers));
constexpr uid_t kUser = 65534;

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Looks for a place as an unprivileged user and tells what came of it: the path, or "!" and the
// error's text.
std::string FindAs(uid_t uid, const Hierarchy& hierarchy) {
  sys::Pipe pipe = sys::MakePipe().value();
  int status = test::InChild([&] {
    if (uid != ::geteuid() && (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
                               ::setresuid(uid, uid, uid) != 0))
      return 1;
    Result<Place> place = FindPlace(hierarchy, kAll);
    std::string told = place.ok() ? place->path : "!" + place.error().text;
    if (!place.ok() && place.error().code != kUnenforced) told = "?no code: " + told;
    return sys::WriteAll(pipe.write_end.get(), told).ok() ? 0 : 2;
  });
  pipe.write_end.Reset();
  EXPECT_EQ(status, 0);
  return sys::ReadAll(pipe.read_end.get(), 65536).value();
}

class PlaceTest : public FakeTreeTest {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "giving directories to another user needs root");
    FakeTreeTest::SetUp();
  }
  std::string below(const std::string& name) const { return path() + "/" + name; }
};

TEST_F(PlaceTest, V1OwnCgroupIsUsedWhenItIsTheCallers) {
  Put("jobs/7/tasks", "");
  EXPECT_EQ(FindAs(kUser, Fake(false, "/jobs/7"))[0], '!');
  Delegate("jobs/7", kUser);
  EXPECT_EQ(FindAs(kUser, Fake(false, "/jobs/7")), below("jobs/7"));
}

TEST_F(PlaceTest, V1DelegatedDirectoryIsUsedOtherwise) {
  std::string found = FindAs(kUser, Fake(false, "/"));
  EXPECT_TRUE(Has(found, "it belongs to uid 0, not to 65534")) << found;
  EXPECT_TRUE(Has(found, "taskcell-probe delegate --user nobody --apply")) << found;
  EXPECT_TRUE(Has(found, "memory, pids and cpu")) << found;
  Put("taskcell/uid-65534/tasks", "");
  EXPECT_EQ(FindAs(kUser, Fake(false, "/"))[0], '!');  // root's
  Delegate("taskcell/uid-65534", kUser);
  EXPECT_EQ(FindAs(kUser, Fake(false, "/")), below("taskcell/uid-65534"));
}

TEST_F(PlaceTest, DirectoryThatOthersMayWriteIsRefused) {
  Put("taskcell/uid-65534/tasks", "");
  Delegate("taskcell/uid-65534", kUser);
  ASSERT_EQ(::chmod(below("taskcell/uid-65534").c_str(), 0775), 0);
  EXPECT_TRUE(Has(FindAs(kUser, Fake(false, "/")), "other users may write it"));
}

TEST_F(PlaceTest, LinkInsteadOfTheDelegatedDirectoryIsRefused) {
  Put("elsewhere/tasks", "");
  Put("taskcell/tasks", "");
  Delegate("elsewhere", kUser);
  ASSERT_EQ(::symlinkat("../elsewhere", dir(), "taskcell/uid-65534"), 0);
  std::string found = FindAs(kUser, Fake(false, "/"));
  EXPECT_TRUE(Has(found, "Too many levels of symbolic links")) << found;
}

TEST_F(PlaceTest, RootUsesItsOwnV1Cgroup) {
  Put("jobs/7/tasks", "");
  EXPECT_EQ(FindAs(0, Fake(false, "/jobs/7")), below("jobs/7"));
}

TEST_F(PlaceTest, RootMakesItsDirectoryWhereItsOwnCgroupIsNotVisible) {
  EXPECT_EQ(FindAs(0, Fake(false, "/../outside")), below("taskcell/uid-0"));
}

TEST_F(PlaceTest, UnifiedOwnCgroupMustBeDelegatedWithItsControlFiles) {
  PutUnified("user/7", "memory pids cpu", "memory pids cpu");
  EXPECT_EQ(FindAs(kUser, Fake(true, "/user/7"))[0], '!');
  ASSERT_EQ(::chown(below("user/7").c_str(), kUser, kUser),
            0);  // the directory alone: EACCES on a move
  EXPECT_TRUE(Has(FindAs(kUser, Fake(true, "/user/7")), "'cgroup.procs'"));
  Delegate("user/7", kUser);
  EXPECT_EQ(FindAs(kUser, Fake(true, "/user/7")), below("user/7"));
}

TEST_F(PlaceTest, UnifiedSupervisorUsesItsParent) {
  PutUnified("user/7", "memory pids cpu", "memory pids cpu");
  PutUnified("user/7/supervisor", "memory pids cpu");
  Delegate("user/7", kUser);
  Delegate("user/7/supervisor", kUser);
  EXPECT_EQ(FindAs(kUser, Fake(true, "/user/7/supervisor")), below("user/7"));
}

TEST_F(PlaceTest, UnifiedControllerThatIsNotHandedDownIsNamed) {
  PutUnified("", "memory pids cpu", "memory pids cpu");
  PutUnified("user.slice", "memory pids cpu", "memory pids");
  for (const char* each :
       {"user.slice/user-65534.slice", "user.slice/user-65534.slice/user@65534.service",
        "user.slice/user-65534.slice/user@65534.service/app.slice"})
    PutUnified(each, "memory pids", "memory pids");
  PutUnified("user.slice/user-65534.slice/user@65534.service/app.slice/t.scope", "memory pids");
  Delegate("user.slice/user-65534.slice/user@65534.service/app.slice/t.scope", kUser);
  std::string found = FindAs(
      kUser, Fake(true, "/user.slice/user-65534.slice/user@65534.service/app.slice/t.scope"));
  EXPECT_TRUE(Has(found, "offers 'memory pids', there is no cpu")) << found;
  EXPECT_TRUE(Has(found, "taskcell-probe delegate --user nobody --apply")) << found;
}

TEST_F(PlaceTest, UnifiedDelegatedDirectoryIsOutOfReachFromElsewhere) {
  PutUnified("", "memory pids cpu", "memory pids cpu");
  PutUnified("session", "memory pids cpu");
  PutUnified("taskcell/uid-65534", "memory pids cpu", "memory pids cpu");
  Delegate("taskcell/uid-65534", kUser);
  std::string found = FindAs(kUser, Fake(true, "/session"));
  EXPECT_TRUE(Has(found, "no process can be moved there")) << found;
  ASSERT_EQ(::chmod(below("cgroup.procs").c_str(), 0666), 0);
  EXPECT_EQ(FindAs(kUser, Fake(true, "/session")), below("taskcell/uid-65534"));
}

TEST_F(PlaceTest, UnifiedRootLeavesAServicesCgroupAlone) {
  for (const char* each : {"", "system.slice/x.service", "taskcell", "taskcell/uid-0"})
    PutUnified(each, "memory pids cpu", "memory pids cpu");
  EXPECT_EQ(FindAs(0, Fake(true, "/system.slice/x.service")), below("taskcell/uid-0"));
  EXPECT_EQ(FindAs(0, Fake(true, "/")), path());
}

TEST_F(PlaceTest, UnmountedAndReadOnlyHierarchiesAreNamed) {
  Hierarchy hierarchy = Fake(true, "/");
  hierarchy.read_only = true;
  EXPECT_TRUE(Has(FindAs(0, hierarchy), "is mounted read-only"));
  hierarchy.mount_point.clear();
  EXPECT_TRUE(Has(FindAs(0, hierarchy), "is not mounted here"));
}

TEST_F(PlaceTest, SomethingMountedOverTheHierarchyIsNoticed) {
  Put("tasks", "");
  Hierarchy hierarchy = Fake(false, "/");
  EXPECT_EQ(FindAs(0, hierarchy), path());
  hierarchy.minor += 1;
  EXPECT_TRUE(Has(FindAs(0, hierarchy), "something is mounted over it"));
}

class UnifiedTest : public FakeTreeTest {};

TEST_F(UnifiedTest, OnlyMissingControllersAreTurnedOn) {
  PutUnified("d", "cpuset cpu io memory pids", "");
  UniqueFd d = sys::OpenAt2(dir(), "d", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath).value();
  ASSERT_TRUE(EnableControllers(d.get(), kAll, false).ok());
  EXPECT_EQ(Get("d/cgroup.subtree_control"), "+memory +pids +cpu");
  Put("d/cgroup.subtree_control", "memory pids cpu");
  ASSERT_TRUE(EnableControllers(d.get(), kAll, true).ok());
  EXPECT_EQ(Get("d/cgroup.subtree_control"), "memory pids cpu");
}

TEST_F(UnifiedTest, CpusetIsNotCpu) {
  PutUnified("d", "cpuset memory pids", "");
  UniqueFd d = sys::OpenAt2(dir(), "d", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath).value();
  EXPECT_TRUE(Has(EnableControllers(d.get(), kAll, false).error().text, "there is no cpu"));
}

TEST_F(UnifiedTest, ThreadedCgroupIsRefusedWithItsCure) {
  PutUnified("d", "memory pids cpu", "");
  Put("d/cgroup.type", "domain threaded\n");
  UniqueFd d = sys::OpenAt2(dir(), "d", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath).value();
  Status enabled = EnableControllers(d.get(), kAll, true);
  ASSERT_FALSE(enabled.ok());
  EXPECT_TRUE(Has(enabled.error().text, "-pids -cpu -cpuset")) << enabled.error().text;
}

// The fake files never become empty, as in a cgroup where processes keep appearing.
TEST_F(UnifiedTest, EvacuationIsBounded) {
  PutUnified("d", "memory pids cpu", "", "4242\n");
  Put("d/supervisor/cgroup.procs", "");
  UniqueFd d = sys::OpenAt2(dir(), "d", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath).value();
  Status enabled = EnableControllers(d.get(), kAll, true);
  ASSERT_FALSE(enabled.ok());
  EXPECT_TRUE(Has(enabled.error().text, "16 rounds")) << enabled.error().text;
  EXPECT_EQ(Get("d/supervisor/cgroup.procs"), "4242");
  EXPECT_EQ(Get("d/cgroup.subtree_control"), "");
}

TEST(RemedyTest, ErrorKeepsItsFirstCode) {
  Error once = Unenforced({Controller::kPids}, Error(Kind::kSystem, "cause", 5));
  EXPECT_EQ(once.code, kUnenforced);
  EXPECT_EQ(once.kind, Kind::kUnsupported);
  EXPECT_EQ(once.err, 5);
  EXPECT_EQ(once.text, "the pids limit cannot be enforced: cause");
  std::string text = once.text;
  EXPECT_EQ(Unenforced({Controller::kCpu}, std::move(once)).text, text);
  EXPECT_EQ(Unenforced({Controller::kCpu}, Error(Kind::kDenied, "x")).kind, Kind::kDenied);
}

TEST(RemedyTest, WhyThereIsNoScopeIsSaidBesideTheRefusal) {
  Error refusal = WithoutScope(Unenforced({Controller::kPids}, Error(Kind::kDenied, "cause")),
                               Error(Kind::kSystem, "busctl: no bus"));
  EXPECT_EQ(refusal.code, kUnenforced);
  EXPECT_EQ(refusal.kind, Kind::kDenied);
  EXPECT_EQ(refusal.text,
            "the pids limit cannot be enforced: cause (no scope of the user's manager was to be "
            "had: busctl: no bus)");
}

}  // namespace
}  // namespace taskcell::cgroup
