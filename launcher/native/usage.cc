#include "launcher/native/options.h"

namespace taskcell::native {

const char kUsage[] = R"(usage: taskcell-launch [option ...] [--] program [argument ...]

Runs a program in a cell of its own: new namespaces, a read-only root, no network but
loopback, no privileges, and limits that are enforced by the kernel or the program is not run.

limits (defaults in brackets)
  --memory SIZE            memory and swap together [4G]
  --pids N                 processes and threads [128]
  --cpus N                 cores, such as 0.5 [1]
  --cpu-set LIST           the processors it may use, such as 0-2,5 [all]
  --io-weight N            share of a busy disk, 1 to 1000 [100, as everybody]
  --nofile N               open descriptors of one process [1024]
  --file-size SIZE         the largest file it may write [any]
  --oom-group              when memory runs out kill the whole cell, not one process (cgroup v2)
  --allow-missing cpu      run without the cpu limit where the controller cannot be had
  --cgroup-parent CGROUP   make the limits below this cgroup, such as /taskcell/jobs
  --output-size SIZE       end the program when it prints more; status 123 [any]
  --timeout TIME           end the program after TIME, such as 10s; status 124 [none]
  --kill-after TIME        from its SIGTERM until everything is killed [2s]
  --die-with-parent        end with the process that started this
root and mounts
  --host-root              the host's /usr, libraries and a few files of /etc [this]
  --rootfs DIR             this directory instead, read-only
  --ro SRC[:DST]           mount SRC read-only; with :nosymfollow after it no link in it is followed
  --bind-rw SRC[:DST]      mount SRC writable: the program can change what is the caller's
  --tmpfs DST:SIZE[:exec]  an empty file system in memory; also sets the size of /tmp [256M]
                           and /workspace [512M]
  --proc MODE              full, or pids: the program's processes alone, nothing of the host [full]
  --dev-minimal            null, zero, full, random, urandom, tty and terminals: what there always is
  --file DST:FD            a read-only file with what descriptor FD holds
  --agent-dir DIR          a copy of DIR's instruction files, read-only at /agent
the program
  --uid N, --gid N         ids inside [1000; as root 65534], never 0
  --userns MODE            ids outside: auto, own, subids or prefer-subids [auto]
  --env NAME=VALUE         add a variable; nothing is inherited but TERM
  --chdir DIR              working directory [/workspace]
  --tty                    a terminal of its own, for use by a person
  --hostname NAME          [taskcell]
  --net none               the only network there is
  --seccomp FILE           a system call filter of your own, in Docker's JSON format
  --report FILE            write a JSON report
instead of running a program
  --check                  say whether cells can be made here and each limit holds, or what to do
for taskcell(1), which gives its plan, or what is to be copied or read, on a descriptor
  --plan-fd N --gate-fd N --status-fd N
  --snapshot-fd N          copy the agent directory that comes over this socket
  --files-fd N             read the files that are asked for over this socket

status: the program's own; 123 after --output-size, 124 after --timeout, 125 the cell could not be made, 126 the
program cannot be executed, 127 it is not found, 128+n it was ended by signal n.
See taskcell-launch(1).
)";

}  // namespace taskcell::native
