// Build step: turns a profile into C++ source with one constant array an architecture.
//   compile_profile default.json default_filter_code.cc
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "seccomp/call_numbers.h"
#include "seccomp/filter_builder.h"
#include "seccomp/never_allowed.h"
#include "seccomp/profile.h"

namespace taskcell::seccomp {
namespace {

struct Target {
  Architecture architecture;
  const char* go_name;
  const char* array_name;
};
constexpr Target kTargets[] = {
    {Architecture::kX86_64, "amd64", "kX86_64Code"},
    {Architecture::kAarch64, "arm64", "kAarch64Code"},
};

// A misspelt name would silently be a call that no rule is about.
bool CheckNames(const Profile& profile, std::string& error) {
  for (const Rule& rule : profile.rules) {
    for (const std::string& name : rule.names) {
      if (IsCallName(name)) continue;
      error = "'" + name + "' is not the name of a system call";
      return false;
    }
  }
  return true;
}

void WriteArray(std::ostream& out, const char* name, const std::vector<sock_filter>& code) {
  out << "constexpr sock_filter " << name << "[] = {\n";
  for (const sock_filter& each : code) {
    out << "    {" << each.code << ", " << unsigned{each.jt} << ", " << unsigned{each.jf} << ", "
        << each.k << "U},\n";
  }
  out << "};\n\n";
}

bool Compile(const std::string& json, std::ostream& out, std::string& error) {
  out << "// Made from seccomp/default.json by seccomp/compile_profile.cc at build time.\n"
         "#include \"seccomp/default_filter.h\"\n\nnamespace taskcell::seccomp {\nnamespace {\n\n";
  for (const Target& target : kTargets) {
    std::optional<Profile> profile = ParseProfile(json, target.go_name, error);
    if (!profile) return false;
    AddNeverAllowed(*profile);
    if (!CheckNames(*profile, error)) return false;
    std::optional<std::vector<sock_filter>> code =
        BuildFilter(*profile, target.architecture, error);
    if (!code) return false;
    WriteArray(out, target.array_name, *code);
  }
  out << "}  // namespace\n\nProgram DefaultFilter(Architecture architecture) {\n"
         "  if (architecture == Architecture::kX86_64) return {kX86_64Code, sizeof kX86_64Code / "
         "sizeof(sock_filter)};\n"
         "  return {kAarch64Code, sizeof kAarch64Code / sizeof(sock_filter)};\n}\n\n"
         "}  // namespace taskcell::seccomp\n";
  return true;
}

int Main(const char* input, const char* output) {
  std::ifstream in(input);
  std::string json((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::string error = "cannot be read";
  std::ofstream out(output);
  if (in && Compile(json, out, error) && out.flush()) return EXIT_SUCCESS;
  std::fprintf(stderr, "compile_profile: %s: %s\n", input, error.c_str());
  out.close();
  (void)std::remove(output);  // ignoring: there may be nothing to remove
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace taskcell::seccomp

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: compile_profile PROFILE.json OUTPUT.cc\n");
    return EXIT_FAILURE;
  }
  return taskcell::seccomp::Main(argv[1], argv[2]);
}
