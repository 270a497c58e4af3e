#include "tests/engine/small_root_fixture.h"

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"

namespace taskcell::test {

namespace fs = std::filesystem;

void SmallRootFixture::MakeSmallRoot() const {
  ASSERT_EQ(test::Run({MAKE_SMALL_ROOT, At("root")}).status, 0);
  fs::create_symlink("bash", At("root/usr/bin/sh"));
}

void SmallRootFixture::MakeSmallRootImage() const {
  Json files = Json::object();
  for (const auto& entry : fs::recursive_directory_iterator(At("root"))) {
    const std::string name = entry.path().string().substr(At("root").size());
    if (entry.is_symlink()) {
      files[name] = {{"link", fs::read_symlink(entry.path()).string()}};
    } else if (entry.is_regular_file()) {
      files[name] = {{"from", entry.path().string()}};
    } else {
      files[name] = {{"dir", true}};
    }
  }
  const Json spec = {{"config", Json::object()}, {"files", files}};
  std::ofstream(At("spec")) << spec.dump();
  const Outcome made =
      test::Run({"/bin/sh", "-c", "exec python3 \"$0\" \"$1\" \"$2\" \"$(cat \"$3\")\"",
                 MAKE_IMAGE_PATH, socket_, image_, At("spec")});
  ASSERT_EQ(made.status, 0) << made.err;
}

}  // namespace taskcell::test
