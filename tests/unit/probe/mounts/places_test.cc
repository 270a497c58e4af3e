// What is the matter with a thing is found wherever it is met: as what was named, as an allowed
// entry, or inside; as a file or a directory; with each policy that looks there.
#include <gmock/gmock.h>
#include <linux/fs.h>
#include <sys/xattr.h>

#include <array>
#include <optional>
#include <ostream>

#include "tests/support/access_list.h"
#include "tests/support/inode_flag.h"
#include "tests/unit/probe/mounts/tree_fixture.h"

namespace taskcell::probe::audit {
namespace {

namespace fs = std::filesystem;

bool SetAttribute(const std::string& path, const char* name) {
  return ::setxattr(path.c_str(), name, "y", 1, 0) == 0;
}

// vfs_cap_data, version 2: CAP_NET_RAW, permitted and effective.
bool SetCapability(const std::string& path) {
  constexpr std::array<unsigned char, 20> kNetRaw = {1, 0, 0, 2, 0, 0x20};
  return ::chmod(path.c_str(), 0755) == 0 &&
         ::setxattr(path.c_str(), "security.capability", kNetRaw.data(), kNetRaw.size(), 0) == 0;
}

bool SetDefaultList(const std::string& path) {
  constexpr std::array<unsigned char, 28> kList = {
      2, 0, 0,    0,    1,    0,    7,  0, 0xff, 0xff, 0xff, 0xff, 4,    0,
      7, 0, 0xff, 0xff, 0xff, 0xff, 32, 0, 5,    0,    0xff, 0xff, 0xff, 0xff};
  return ::setxattr(path.c_str(), "system.posix_acl_default", kList.data(), kList.size(), 0) == 0;
}

// What is done to a thing. `spoil` is false where the file system has no means for it.
struct Spoiler {
  const char* name;
  Code code;
  bool of_files;
  bool of_directories;
  bool (*spoil)(const std::string& path);
  void (*mend)(const std::string& path) = nullptr;
};

constexpr Spoiler kSpoilers[] = {
    {"SetUser", Code::kSetId, true, false,
     [](const std::string& path) { return ::chmod(path.c_str(), 04755) == 0; }},
    {"SetGroup", Code::kSetId, true, false,
     [](const std::string& path) { return ::chmod(path.c_str(), 02755) == 0; }},
    {"Capability", Code::kFileCapability, true, false, SetCapability},
    {"WritableByAll", Code::kWritable, true, true,
     [](const std::string& path) { return ::chmod(path.c_str(), 0777) == 0; }},
    {"AccessList", Code::kAccessList, true, true, test::LetUser1500Write},
    {"DefaultList", Code::kAccessList, false, true, SetDefaultList},
    {"Foreign", Code::kForeignOwner, true, true,
     [](const std::string& path) { return ::chown(path.c_str(), 12345, 0) == 0; }},
    {"Immutable", Code::kImmutable, true, true,
     [](const std::string& path) { return test::SetInodeFlag(path, FS_IMMUTABLE_FL, true); },
     [](const std::string& path) {
       EXPECT_TRUE(test::SetInodeFlag(path, FS_IMMUTABLE_FL, false));
     }},
    {"AppendOnly", Code::kImmutable, true, true,
     [](const std::string& path) { return test::SetInodeFlag(path, FS_APPEND_FL, true); },
     [](const std::string& path) { EXPECT_TRUE(test::SetInodeFlag(path, FS_APPEND_FL, false)); }},
    {"OverlayAttribute", Code::kOverlayAttribute, true, true,
     [](const std::string& path) { return SetAttribute(path, "trusted.overlay.redirect"); }},
    {"OwnerForFuse", Code::kOverlayAttribute, true, true,
     [](const std::string& path) { return SetAttribute(path, "user.containers.override_stat"); }},
    {"SecondName", Code::kHardLinkLeaves, true, false, [](const std::string& path) {
       const std::string top = path.substr(0, path.find('/', sizeof "/tmp"));
       return ::link(path.c_str(), (top + "/other-name").c_str()) == 0;
     }}};

// Where it is met.
struct Place {
  const char* name;
  Policy policy;
  const char* audited;  // below the test's directory
  const char* path;     // of what is spoilt, the same
  const char* found;    // what the finding calls it
  bool is_file;
  bool all_attributes = false;
};

constexpr Place kPlaces[] = {
    {"StrictItself", Policy::kStrict, "tree", "tree", ".", false},
    {"StrictInnerDirectory", Policy::kStrict, "tree", "tree/in/dir", "in/dir", false},
    {"StrictInnerFile", Policy::kStrict, "tree", "tree/in/file", "in/file", true},
    {"StrictInnerFileAsked", Policy::kStrict, "tree", "tree/in/file", "in/file", true, true},
    {"AgentItself", Policy::kAgent, "agent", "agent", ".", false},
    {"AgentEntryFile", Policy::kAgent, "agent", "agent/SOUL.md", "SOUL.md", true},
    {"AgentEntryDirectory", Policy::kAgent, "agent", "agent/wiki", "wiki", false},
    {"AgentInnerFile", Policy::kAgent, "agent", "agent/wiki/page", "wiki/page", true},
    {"AgentInnerDirectory", Policy::kAgent, "agent", "agent/SKILLS/dir", "SKILLS/dir", false},
    {"BindDirectory", Policy::kBind, "tree", "tree", ".", false},
    {"BindFile", Policy::kBind, "tree/in/file", "tree/in/file", ".", true}};

struct Row {
  const Spoiler* spoiler;
  const Place* place;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.place->name << row.spoiler->name; }

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (const Spoiler& spoiler : kSpoilers) {
    for (const Place& place : kPlaces) {
      if (place.is_file ? spoiler.of_files : spoiler.of_directories)
        rows.push_back({&spoiler, &place});
    }
  }
  return rows;
}

// The code that is right there; none where the manual says that it is not looked for.
std::optional<Code> Right(const Row& row) {
  const std::string place = row.place->name;
  if (row.spoiler->code == Code::kOverlayAttribute && place == "StrictInnerFile")
    return std::nullopt;
  if (row.spoiler->code == Code::kHardLinkLeaves && place == "AgentEntryFile")
    return Code::kEntrySkipped;
  return row.spoiler->code;
}

class PlacesTest : public test::TreeTest, public testing::WithParamInterface<Row> {
 protected:
  void SetUp() override {
    for (const char* name : {"tree/in/file", "agent/SOUL.md", "agent/wiki/page"}) Put(name, "x");
    for (const char* name : {"tree/in/dir", "agent/SKILLS/dir"}) fs::create_directories(At(name));
  }
  // Everything found, of the directory and of its entries.
  Found AllFound() const {
    const Place& place = *GetParam().place;
    AuditRequest request = Request(place.policy);
    request.directory = At(place.audited);
    request.owner = ::geteuid();
    request.all_attributes = place.all_attributes;
    const Report report = probe::audit::Audit(request).value();
    Found found = FoundIn(report);
    for (const EntryReport& entry : report.entries) found.merge(FoundIn(entry.notes));
    return found;
  }
};

TEST_P(PlacesTest, ItIsFoundThere) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to spoil what belongs to it");
  const Row& row = GetParam();
  ASSERT_EQ(AllFound(), Found()) << "control: all is plain";
  const std::string path = At(row.place->path);
  TASKCELL_REQUIRE(row.spoiler->spoil(path), "needs a file system with the means for it");
  const Found found = AllFound();
  if (row.spoiler->mend != nullptr) row.spoiler->mend(path);
  Found right;
  if (const std::optional<Code> code = Right(row))
    right[row.place->found] = {std::string(TextOf(*code).name)};
  EXPECT_EQ(found, right);
}

INSTANTIATE_TEST_SUITE_P(All, PlacesTest, testing::ValuesIn(Rows()), [](const auto& row) {
  return std::string(row.param.place->name) + row.param.spoiler->name;
});

}  // namespace
}  // namespace taskcell::probe::audit
