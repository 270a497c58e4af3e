#include "launcher/native/terminal.h"

#include <unistd.h>

#include "launcher/sys/job_control.h"

namespace taskcell::native {

Terminal::Terminal() : is_lent_(sys::IsForeground(STDIN_FILENO)) {}

Terminal::~Terminal() {
  // ignoring: a terminal that has gone away needs no owner
  if (is_lent_) (void)sys::TakeForeground(STDIN_FILENO);
}

}  // namespace taskcell::native
