// How long a snapshot of an agent directory takes: 2,000 files and 8 MiB, one of them changed since
// the last one, and none, taken as the gateway takes them. Usage: taskcell-bench-snapshot LAUNCHER
// DIR [ROUNDS]; works below DIR, which must not exist, and leaves it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/bounded_snapshot.h"
#include "launcher/sys/file.h"
#include "tests/bench/measure.h"

namespace taskcell::bench {
namespace {

constexpr int kFiles = 2000;
constexpr int kFilesADirectory = 50;
constexpr std::size_t kBytes = (std::size_t{8} << 20U) / kFiles;

bool Write(const std::string& path, char fill) {
  Result<UniqueFd> fd = sys::Open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  return fd.ok() && sys::WriteAll(fd->get(), std::string(kBytes, fill)).ok();
}

std::string FileName(const std::string& top, int number) {
  return Text(top, "/agent/wiki/d", number / kFilesADirectory, "/page-", number, ".md");
}

bool MakeAgent(const std::string& top) {
  for (const char* name : {"", "/store", "/agent", "/agent/wiki"}) {
    if (::mkdir((top + name).c_str(), 0700) != 0) return false;
  }
  for (int made = 0; made < kFiles; ++made) {
    std::string directory = Text(top, "/agent/wiki/d", made / kFilesADirectory);
    if (made % kFilesADirectory == 0 && ::mkdir(directory.c_str(), 0755) != 0) return false;
    if (!Write(FileName(top, made), 'a')) return false;
  }
  return true;
}

// In milliseconds.
struct Took {
  double wall = -1;
  double cpu = -1;
};

double Now() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Of this process and of those it has waited for.
double CpuTime() {
  double ms = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    struct rusage used = {};
    (void)::getrusage(who, &used);
    for (const struct timeval& part : {used.ru_utime, used.ru_stime})
      ms += static_cast<double>(part.tv_sec) * 1e3 + static_cast<double>(part.tv_usec) / 1e3;
  }
  return ms;
}

// What one snapshot takes; -1 where it is not of the kind wanted.
Took Measure(const std::string& launcher, const std::string& top, bool reused) {
  UniqueFd store = sys::Open(top + "/store", O_RDONLY | O_DIRECTORY).value();
  UniqueFd agent = sys::Open(top + "/agent", O_RDONLY | O_DIRECTORY).value();
  const Took begun = {Now(), CpuTime()};
  Result<mounts::StoredSnapshot> taken = mounts::SnapshotTaker(launcher).Take(
      {store.get(), top + "/store"}, agent.get(), mounts::Subtree::kPrune, {});
  const Took took = {Now() - begun.wall, CpuTime() - begun.cpu};
  if (!taken.ok() || taken->is_reused() != reused || !taken->Release(true).ok()) return {};
  return took;
}

int Main(const std::string& launcher, const std::string& top, int rounds) {
  constexpr useconds_t kSettleUs = 150'000;
  if (!MakeAgent(top)) {
    std::perror(top.c_str());
    return 1;
  }
  struct Row {
    const char* name;
    std::vector<double> wall;
    std::vector<double> cpu;
  };
  std::array<Row, 2> rows = {{{"one file changed since the last: all are copied", {}, {}},
                              {"nothing changed since the last: it is used again", {}, {}}}};
  for (int round = 0; round < rounds; ++round) {
    if (!Write(FileName(top, round % kFiles), static_cast<char>('b' + round % 24))) return 1;
    (void)::usleep(kSettleUs);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const Took took = Measure(launcher, top, row == 1);
      if (took.wall < 0) {
        std::fputs("taskcell-bench-snapshot: a snapshot was not what it should be\n", stderr);
        return 1;
      }
      rows[row].wall.push_back(took.wall);
      rows[row].cpu.push_back(took.cpu);
    }
  }
  // As a table for a Markdown page.
  std::printf(
      "\n| snapshot of %d files, %zu KiB, medians of %d rounds | wall ms | cpu ms |\n"
      "|---|---|---|\n",
      kFiles, kFiles * kBytes / 1024, rounds);
  for (const Row& row : rows)
    std::printf("| %s | %.1f | %.1f |\n", row.name, Percentile(row.wall, 0.5),
                Percentile(row.cpu, 0.5));
  return 0;
}

}  // namespace
}  // namespace taskcell::bench

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  constexpr int kRounds = 20;
  return taskcell::bench::Main(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : kRounds);
}
