#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace taskcell::test {

// The tree of the kernel's selftests (tools/testing/selftests/openat2/resolve_test.c) below the new
// directory `at`, without its mount at mnt.
inline void MakeOpenat2Layout(const std::string& at) {
  const std::string far_up = "../../../../../../../../../../../../../../etc/passwd";
  for (const char* name : {"/root", "/mnt", "/etc", "/cheeky"})
    std::filesystem::create_directories(at + name);
  std::ofstream(at + "/etc/passwd") << "the tree's own";
  const std::vector<std::pair<std::string, std::string>> links = {
      {"procexe", "/proc/self/exe"},
      {"procroot", "/proc/self/root"},
      {"mnt/self", "../mnt/"},
      {"mnt/absself", "/mnt/"},
      {"creatlink", "/newfile3"},
      {"reletc", "etc/"},
      {"relsym", "etc/passwd"},
      {"absetc", "/etc/"},
      {"abssym", "/etc/passwd"},
      {"abscheeky", "/cheeky"},
      {"cheeky/absself", "/"},
      {"cheeky/self", "../../root/"},
      {"cheeky/garbageself", "/../../root/"},
      {"cheeky/passwd", "../cheeky/../cheeky/../etc/../etc/passwd"},
      {"cheeky/abspasswd", "/../cheeky/../cheeky/../etc/../etc/passwd"},
      {"cheeky/dotdotlink", far_up},
      {"cheeky/garbagelink", "/" + far_up}};
  for (const auto& [name, target] : links)
    ASSERT_EQ(::symlink(target.c_str(), (at + "/" + name).c_str()), 0) << name;
}

}  // namespace taskcell::test
