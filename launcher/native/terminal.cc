#include "launcher/native/terminal.h"

#include <unistd.h>

#include "launcher/sys/job_control.h"
#include "launcher/sys/self.h"

namespace taskcell::native {

Terminal::Terminal() : is_ours_(sys::IsForeground(STDIN_FILENO)) {
  int fd = STDIN_FILENO;
  for (Stream& stream : streams_) {
    Result<int> flags = sys::StatusFlags(fd);
    if (flags.ok()) stream.flags = flags.value();
    stream.modes = sys::TerminalModes(fd);
    if (stream.modes) stream.foreground = sys::ForegroundGroup(fd);
    ++fd;
  }
}

Terminal::~Terminal() {
  int fd = STDIN_FILENO;
  for (const Stream& stream : streams_) GiveBack(fd++, stream);
}

// Failures are ignored: a terminal that has gone away needs nothing.
void Terminal::GiveBack(int fd, const Stream& stream) {
  if (stream.modes) {
    pid_t now = sys::ForegroundGroup(fd);
    if (now == 0) return;  // not our terminal
    if (!sys::IsForeground(fd)) {
      if (sys::IsGroup(now)) return;
      (void)sys::SetForeground(fd, stream.foreground);
    }
    (void)sys::SetTerminalModes(fd, *stream.modes);
  }
  if (stream.flags) (void)sys::SetStatusFlags(fd, *stream.flags);
}

}  // namespace taskcell::native
