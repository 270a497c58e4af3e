#pragma once

#include <array>
#include <optional>

#include "launcher/sys/terminal.h"

namespace taskcell::native {

// The caller's descriptors 0, 1 and 2 while a job has them too, and the terminal where they are
// one: a job that leaves it in raw mode, or not blocking, leaves it so for the caller. A job has a
// process group of its own (else its kill(0) would reach the launcher), and on a terminal one group
// is in the foreground.
class Terminal {
 public:
  // Remembers how they are.
  Terminal();
  // Gives them back as they were. To be destroyed when no process of the cell is left. A terminal
  // that another living group has in its foreground by now (the launcher was put into the
  // background) is in use there and left alone.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // True when descriptor 0 is this process's terminal with this process in its foreground: then the
  // job may take its place. The job of a launcher in the background waits like any background job.
  bool is_ours() const { return is_ours_; }

 private:
  struct Stream {
    std::optional<int> flags;
    std::optional<struct termios> modes;  // of a terminal
    pid_t foreground = 0;
  };
  static void GiveBack(int fd, const Stream& stream);

  std::array<Stream, 3> streams_;  // by descriptor
  bool is_ours_;
};

}  // namespace taskcell::native
