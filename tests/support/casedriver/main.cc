// taskcell-casedriver: calls the gateway's own code with the verbs of the given cases
// (tests/data/cases/given-cases.md), so that further cases run unchanged. A test program.
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "tests/support/casedriver/verbs.h"
#include "tests/support/fixture.h"

namespace taskcell::casedriver {
namespace {

// As root: becomes $CASE_USER (alice by default), without supplementary groups.
bool LeaveRoot() {
  if (::geteuid() != 0) return true;
  const char* name = ::secure_getenv("CASE_USER");
  if (name == nullptr || *name == '\0') name = "alice";
  const struct passwd* user = ::getpwnam(name);  // NOLINT(concurrency-mt-unsafe): one thread
  if (user == nullptr) {
    std::fprintf(stderr, "taskcell-casedriver: no user '%s'; set CASE_USER\n", name);
    return false;
  }
  test::EnterDelegatedCgroup(user->pw_uid);
  return ::setgroups(0, nullptr) == 0 &&
         ::setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
         ::setresuid(user->pw_uid, user->pw_uid, user->pw_uid) == 0;
}

// "--name value" pairs, "--json", and what is left over or comes after "--".
Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 2; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--") {
      arguments.rest.insert(arguments.rest.end(), argv + i + 1, argv + argc);
      break;
    }
    if (word == "--json") {
      arguments.json = true;
    } else if (word.starts_with("--") && i + 1 < argc) {
      arguments.options.emplace(word.substr(2), argv[++i]);
    } else {
      arguments.rest.emplace_back(word);
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  constexpr int kUsage = 2;
  if (!LeaveRoot()) return kUsage;
  const std::string_view verb = argc > 1 ? argv[1] : "";
  const Arguments arguments = ReadArguments(argc, argv);
  if (verb == "config-check") return ConfigCheck(arguments);
  if (verb == "run-task") return RunTaskVerb(arguments);
  if (verb == "doctor") return Doctor(arguments);
  if (verb == "parse") return Parse(arguments);
  if (verb == "run-cli") return RunCli(arguments);
  if (verb == "classify-exit") return ClassifyExit();
  if (verb == "remove-container") return RemoveContainer(arguments);
  if (verb == "sweep") return SweepVerb(arguments);
  if (verb == "read-logs") {
    std::puts("{\"reads_engine_logs\":false}");
    return 0;
  }
  std::fprintf(stderr,
               "usage: taskcell-casedriver config-check|run-task|doctor|parse|run-cli|"
               "classify-exit|remove-container|sweep|read-logs ...\n");
  return kUsage;
}

}  // namespace
}  // namespace taskcell::casedriver

int main(int argc, char** argv) { return taskcell::casedriver::Main(argc, argv); }
