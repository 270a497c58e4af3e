// How fast taskcell-probe mounts looks at a million files in the cache, beside GNU find and beside
// the least that any program could do, and what it needs for half a million files whose other names
// are elsewhere. Usage: taskcell-bench-walk BIN_DIR DIR [FILES [ROUNDS]]; makes the trees in DIR,
// which must not exist, and leaves them.
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

// Half as many files as in a tree of MakeTree, each with another name in `others`.
bool MakeLinkedTree(const std::string& top, const std::string& others, unsigned files) {
  if (!MakeTree(top, files / 2) || ::mkdir(others.c_str(), 0755) != 0) return false;
  for (unsigned made = 0; made < files / 2; ++made) {
    const std::string path =
        Text(top, "/d", made / kFilesADirectory, "/file-", made % kFilesADirectory, ".txt");
    if (::link(path.c_str(), Text(others, "/", made).c_str()) != 0) return false;
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
    rows.push_back({{Text("bare program, threads: ", threads),
                     {bin + "/../tests/taskcell-bench-walk-floor", tree, threads},
                     true,
                     {}},
                    "taskcell-bench-",
                    floor});
    rows.push_back({{Text("`taskcell-probe mounts --threads ", threads, "`"),
                     {bin + "/taskcell-probe", "mounts", "--threads", threads, tree},
                     true,
                     {}},
                    "taskcell-probe",
                    floor});
  }
  rows.push_back({{"`find DIR -xdev -type f -links +1`",
                   {"find", tree, "-xdev", "-type", "f", "-links", "+1"},
                   true,
                   {}},
                  "find",
                  0});
  return rows;
}

// The audit's peak with a tree of linked files.
void ShowLinked(const std::string& bin, const std::string& tree, unsigned files) {
  for (const char* threads : {"1", "2", "4"}) {
    const Contender audit = {Text("`taskcell-probe mounts --threads ", threads, "`, ", files / 2,
                                  " files with another name elsewhere"),
                             {"/bin/sh", "-c", "\"$@\" >/dev/null; [ $? = 1 ]", "sh",
                              bin + "/taskcell-probe", "mounts", "--threads", threads, tree},
                             true,
                             {}};
    std::printf(
        "| %s | | | | %llu |\n", audit.name.c_str(),
        static_cast<unsigned long long>(ResidentKiB(audit, {}, "taskcell-probe").value_or(0)));
  }
}

int Main(const std::string& bin, const std::string& top, unsigned files, int rounds) {
  const std::string tree = top + "/tree";
  const std::string linked = top + "/linked";
  if (::mkdir(top.c_str(), 0755) != 0 || !MakeTree(tree, files) ||
      !MakeLinkedTree(linked, top + "/others", files)) {
    std::perror(top.c_str());
    return 1;
  }
  const std::vector<Row> rows = Rows(bin, tree);
  std::vector<Contender> contenders;
  for (const Row& row : rows) contenders.push_back(row.contender);
  std::vector<Timing> timings = Compare(contenders, rounds, {});
  // As a table for a Markdown page.
  std::printf(
      "\n| %u files in the cache, medians of %d rounds | wall ms | to the bare program | "
      "cpu ms | resident KiB |\n|---|---|---|---|---|\n",
      files, rounds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!timings[i].failure.empty()) {
      std::printf("| %s | %s | | | |\n", contenders[i].name.c_str(), timings[i].failure.c_str());
      continue;
    }
    double wall = Percentile(timings[i].wall_us, 0.5);
    const Timing& floor = timings[rows[i].floor];
    double ratio = floor.failure.empty() ? wall / Percentile(floor.wall_us, 0.5) : 0;
    std::printf(
        "| %s | %.0f | %.2f | %.0f | %llu |\n", contenders[i].name.c_str(), wall / 1000, ratio,
        Percentile(timings[i].cpu_us, 0.5) / 1000,
        static_cast<unsigned long long>(ResidentKiB(contenders[i], {}, rows[i].comm).value_or(0)));
  }
  ShowLinked(bin, linked, files);
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
