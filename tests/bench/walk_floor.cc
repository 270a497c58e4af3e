// The least that a look at every file of a tree can cost: getdents64 for each directory, one statx
// for each entry, with as many threads as wanted. Prints the number of entries and of files with
// more than one link. Usage: taskcell-bench-walk-floor DIR [THREADS]
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::mutex mutex;
std::condition_variable changed;
std::vector<int> directories;
unsigned busy = 0;  // threads that read a directory
std::atomic<uint64_t> entries = 0;
std::atomic<uint64_t> linked = 0;

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void Read(int fd, std::vector<int>& found) {
  alignas(struct dirent64) char records[16384];
  uint64_t met = 0;
  for (;;) {
    ssize_t got = ::getdents64(fd, records, sizeof records);
    if (got < 0) Fail("getdents64");
    if (got == 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* record = reinterpret_cast<const struct dirent64*>(records + at);
      at += record->d_reclen;
      const char* name = record->d_name;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
      struct statx info;
      if (::statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                  STATX_BASIC_STATS | STATX_MNT_ID, &info) < 0)
        Fail("statx");
      ++met;
      if (S_ISREG(info.stx_mode) && info.stx_nlink > 1) ++linked;
      if (!S_ISDIR(info.stx_mode)) continue;
      int child = ::openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (child < 0) Fail("openat");
      found.push_back(child);
    }
  }
  entries += met;
  (void)::close(fd);  // ignoring: it was only read
}

void Work() {
  std::vector<int> found;
  bool works = false;
  for (;;) {
    int fd = -1;
    {
      std::unique_lock lock(mutex);
      if (works) --busy;
      directories.insert(directories.end(), found.begin(), found.end());
      if (found.size() > 1 || busy == 0) changed.notify_all();
      changed.wait(lock, [] { return !directories.empty() || busy == 0; });
      if (directories.empty()) return;
      ++busy;
      fd = directories.back();
      directories.pop_back();
    }
    works = true;
    found.clear();
    Read(fd, found);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  struct rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) Fail("getrlimit");
  files.rlim_cur = files.rlim_max;  // every directory that was found and not yet read is open
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) Fail("setrlimit");
  int top = ::open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (top < 0) Fail(argv[1]);
  directories.push_back(top);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(Work);
  for (std::thread& worker : workers) worker.join();
  std::printf("%llu %llu\n", static_cast<unsigned long long>(entries.load()),
              static_cast<unsigned long long>(linked.load()));
  return 0;
}
