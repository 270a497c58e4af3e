// Where the credential of a task is in memory while the AI works: the whole memory of the program
// that runs it, and of all it has started, is searched.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gateway/config/secret.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/engine/task_fixture.h"
#include "tests/support/background.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

// One mapping of a process, as /proc/PID/smaps tells it.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string head;   // its first line
  std::string flags;  // " rd wr mr lo dd ..."
};

std::vector<Mapping> MappingsOf(pid_t pid) {
  std::ifstream smaps(Text("/proc/", pid, "/smaps"));
  std::vector<Mapping> mappings;
  for (std::string line; std::getline(smaps, line);) {
    Mapping next;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &next.start, &next.end) == 2) {
      next.head = line;
      mappings.push_back(next);
    } else if (line.starts_with("VmFlags:")) {
      mappings.back().flags = line.substr(8);
    }
  }
  return mappings;
}

std::string BytesOf(int memory, const Mapping& mapping) {
  std::string bytes(mapping.end - mapping.start, '\0');
  const ssize_t got =
      ::pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(mapping.start));
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

// What is known of where a text stands in one process's memory.
struct Places {
  std::vector<std::string> guarded;    // locked, and in no core dump
  std::vector<std::string> elsewhere;  // with what stands around it
  std::size_t bytes = 0;               // that were searched
};

Places Search(pid_t pid, std::string_view text) {
  Places places;
  Result<UniqueFd> memory = sys::Open(Text("/proc/", pid, "/mem"), O_RDONLY);
  if (!memory.ok()) return places;
  for (const Mapping& mapping : MappingsOf(pid)) {
    const std::string bytes = BytesOf(memory->get(), mapping);
    places.bytes += bytes.size();
    const bool is_guarded = mapping.flags.find(" lo") != std::string::npos &&
                            mapping.flags.find(" dd") != std::string::npos;
    for (std::size_t at = bytes.find(text); at != std::string::npos;
         at = bytes.find(text, at + 1)) {
      const std::size_t from = at < 48 ? 0 : at - 48;
      (is_guarded ? places.guarded : places.elsewhere)
          .push_back(Text(mapping.head, ": ", Printable(bytes.substr(from, 144))));
    }
  }
  return places;
}

std::vector<pid_t> WithDescendants(pid_t pid) {
  std::vector<pid_t> all = {pid};
  for (std::size_t at = 0; at < all.size(); ++at) {
    // Each thread has children of its own.
    std::error_code ignored;  // a process ends when it likes
    for (const auto& thread :
         std::filesystem::directory_iterator(Text("/proc/", all[at], "/task"), ignored)) {
      std::ifstream children(thread.path() / "children");
      for (pid_t child = 0; children >> child;) all.push_back(child);
    }
  }
  return all;
}

class SecretMemoryTest : public TaskFixture {
 protected:
  static constexpr std::string_view kSleeps = "24.4711";

  // An account of the provider's, whose secret is `line` of config.toml.
  void PutAccount(std::string_view line) const {
    Put("config.toml", Text(ReadText(At("home/config.toml")),
                            "[[accounts]]\nid = \"a\"\nprovider = \"openai\"\n", line, "\n"));
    std::filesystem::permissions(At("home/config.toml"), std::filesystem::perms(0600));
  }

  // Runs a task with a tool that sleeps, and searches meanwhile.
  void ExpectItInLockedPagesAlone() const;

  static bool TheToolRuns(pid_t pid) {
    for (pid_t each : WithDescendants(pid))
      if (ReadText(Text("/proc/", each, "/cmdline")).ends_with(Text('\0', kSleeps, '\0')))
        return true;
    return false;
  }
};

void SecretMemoryTest::ExpectItInLockedPagesAlone() const {
  gateway::ProviderProcess provider = MakeProvider(
      {{"steps", {{{"do", "shell"}, {"command", Text("sleep ", kSleeps)}}}}, {"reply", "x"}});
  ASSERT_TRUE(provider.IsUp());
  GiveHomeToUser();
  RunOptions run;
  run.user = user_;
  run.environment = {"OPENAI_BASE_URL=" + provider.Url("/v1")};
  Background task({Program("taskcell"), "run", "a1", "Sleep.", "--home", path_ + "/home"}, run,
                  At("output"));
  ASSERT_TRUE(WaitFor([&] { return TheToolRuns(task.pid()); })) << ReadText(At("output"));
  ASSERT_EQ(provider.Log().size(), 1U);
  EXPECT_TRUE(provider.Log()[0].authorized) << "control: it was used";

  for (pid_t pid : WithDescendants(task.pid())) {
    const Places places = Search(pid, kKey);
    const std::string name = ReadText(Text("/proc/", pid, "/comm"));
    EXPECT_GT(places.bytes, 0U) << name;
    EXPECT_EQ(places.elsewhere, std::vector<std::string>()) << name;
    EXPECT_EQ(places.guarded.empty(), pid != task.pid()) << name;
  }
  task.Signal(SIGTERM);
  EXPECT_TRUE(task.Wait(std::chrono::minutes(1)).has_value());
}

TEST_F(SecretMemoryTest, WhileTheAiWorksItStandsInLockedPagesAlone) {
  const std::string keyfile(gateway::kKeyBytes, 'k');
  Put(".keyfile", keyfile);
  PutAccount(
      Text("api_key_enc = \"", gateway::Encrypt(kKey, keyfile, "nonce-of-12-").value(), '"'));
  ExpectItInLockedPagesAlone();
}

}  // namespace
}  // namespace taskcell::test
