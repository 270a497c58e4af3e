#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace taskcell::test {

// Does `swap` over and over on a thread of its own until it is stopped, with a short rest after
// each burst: against bursts alone a file that is copied has changed every time, and nothing is
// ever whole. `swap` must leave things as it found them, and allocate nothing: the tests fork
// beside it.
class Swapper {
 public:
  explicit Swapper(std::function<void()> swap)
      : thread_([this, swap = std::move(swap)] {
          for (unsigned times = 1; !done_; ++times) {
            swap();
            if (times % kBurst == 0) (void)::usleep(kRestUs);
          }
        }) {}
  ~Swapper() {
    done_ = true;
    thread_.join();
  }
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;

 private:
  static constexpr unsigned kBurst = 64;
  static constexpr unsigned kRestUs = 300;

  std::atomic<bool> done_ = false;
  std::thread thread_;
};

// Exchanges two names in one step, and back: each of them always exists.
inline std::function<void()> Exchange(std::string first, std::string second) {
  return [first = std::move(first), second = std::move(second)] {
    for (int times = 0; times < 2; ++times)
      (void)::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE);
  };
}

// Takes what is called `name` away, puts a symbolic link to `target` there for `held_us`, takes
// that away again and waits `apart_us`: there are moments with neither.
inline std::function<void()> FlipToLink(std::string name, std::string target, unsigned held_us = 0,
                                        unsigned apart_us = 0) {
  std::string aside = name + ".aside";
  return [name = std::move(name), target = std::move(target), aside = std::move(aside), held_us,
          apart_us] {
    (void)::rename(name.c_str(), aside.c_str());
    if (::symlink(target.c_str(), name.c_str()) == 0) {
      (void)::usleep(held_us);
      (void)::unlink(name.c_str());
    }
    (void)::rename(aside.c_str(), name.c_str());
    (void)::usleep(apart_us);
  };
}

}  // namespace taskcell::test
