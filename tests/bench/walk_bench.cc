// How fast taskcell-probe mounts looks at a million files in the cache, beside GNU find and beside
// the least that any program could do. Usage: taskcell-bench-walk BIN_DIR DIR [FILES [ROUNDS]];
// makes the tree in DIR, which must not exist, and leaves it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "tests/bench/measure.h"

namespace taskcell::bench {
namespace {

constexpr unsigned kFilesADirectory = 1000;

bool MakeTree(const std::string& top, unsigned files) {
  if (::mkdir(top.c_str(), 0755) != 0) return false;
  for (unsigned made = 0; made < files; ++made) {
    std::string directory = Text(top, "/d", made / kFilesADirectory);
    if (made % kFilesADirectory == 0 && ::mkdir(directory.c_str(), 0755) != 0) return false;
    std::string path = Text(directory, "/file-", made % kFilesADirectory, ".txt");
    if (::mknod(path.c_str(), S_IFREG | 0644, 0) != 0) return false;
  }
  return true;
}

struct Row {
  Contender contender;
  std::string comm;   // whose memory is looked at
  std::size_t floor;  // the row it is compared with
};

std::vector<Row> Rows(const std::string& bin, const std::string& tree) {
  std::vector<Row> rows;
  for (const char* threads : {"1", "2", "4"}) {
    std::size_t floor = rows.size();
    rows.push_back({{Text("floor, threads: ", threads),
                     {bin + "/../tests/taskcell-bench-walk-floor", tree, threads},
                     true,
                     {}},
                    "taskcell-bench-",
                    floor});
    rows.push_back({{Text("taskcell-probe mounts, threads: ", threads),
                     {bin + "/taskcell-probe", "mounts", "--threads", threads, tree},
                     true,
                     {}},
                    "taskcell-probe",
                    floor});
  }
  rows.push_back({{"find -xdev -type f -links +1",
                   {"find", tree, "-xdev", "-type", "f", "-links", "+1"},
                   true,
                   {}},
                  "find",
                  0});
  return rows;
}

int Main(const std::string& bin, const std::string& tree, unsigned files, int rounds) {
  if (!MakeTree(tree, files)) {
    std::perror(tree.c_str());
    return 1;
  }
  const std::vector<Row> rows = Rows(bin, tree);
  std::vector<Contender> contenders;
  for (const Row& row : rows) contenders.push_back(row.contender);
  std::vector<Timing> timings = Compare(contenders, rounds, {});
  std::printf("\n%u files in directories of %u, in the cache; medians of %d rounds\n", files,
              kFilesADirectory, rounds);
  std::printf("%-36s %9s %9s %9s %12s\n", "", "wall ms", "to floor", "cpu ms", "resident KiB");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!timings[i].failure.empty()) {
      std::printf("%-36s %s\n", contenders[i].name.c_str(), timings[i].failure.c_str());
      continue;
    }
    double wall = Percentile(timings[i].wall_us, 0.5);
    const Timing& floor = timings[rows[i].floor];
    double ratio = floor.failure.empty() ? wall / Percentile(floor.wall_us, 0.5) : 0;
    std::printf(
        "%-36s %9.0f %9.2f %9.0f %12llu\n", contenders[i].name.c_str(), wall / 1000, ratio,
        Percentile(timings[i].cpu_us, 0.5) / 1000,
        static_cast<unsigned long long>(ResidentKiB(contenders[i], {}, rows[i].comm).value_or(0)));
  }
  return 0;
}

}  // namespace
}  // namespace taskcell::bench

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  constexpr unsigned kFiles = 1'000'000;
  constexpr int kRounds = 5;
  return taskcell::bench::Main(argv[1], argv[2],
                               argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : kFiles,
                               argc > 4 ? std::atoi(argv[4]) : kRounds);
}
