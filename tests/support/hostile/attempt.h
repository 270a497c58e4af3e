#pragma once

#include <string>

namespace taskcell::test {

// What became of one attempt to get out of a cell, or to take the host with it.
struct Attempted {
  bool refused = true;
  std::string how;  // an errno's name, or a few words
};

struct Targets {
  std::string key_file;       // the gateway's key file on the host
  int host_port = 0;          // a port something on the host's loopback listens on; 0: none given
  long process_limit = 4096;  // the fork bomb stops here by itself
  long memory_limit_mib = 16384;  // the memory hog too
};

// The attempts, each for a process of its own (some end it).
Attempted ReadFile(const std::string& path);
Attempted WriteFile(const std::string& path);
Attempted Connect(const char* address, int port);
Attempted OpenSocket(int domain, int type, int protocol);
Attempted Mount();
Attempted NewUserNamespace();
Attempted TraceInit();
Attempted ReadInitMemory();
Attempted TakeInitDescriptor();
Attempted ForeignDescriptors();
Attempted KillInit();
Attempted BecomeRoot();
Attempted LoadBpf();
Attempted SetUpIoUring();
Attempted WriteCgroup();
Attempted ForkBomb(long limit);

// Takes memory until something stops it, telling the MiB so far as a decimal line on `progress`.
Attempted HogMemory(long limit_mib, int progress);

// True when this network namespace has no interface but lo: only then is anything tried that leaves
// this process.
bool OnlyLoopback();

}  // namespace taskcell::test
