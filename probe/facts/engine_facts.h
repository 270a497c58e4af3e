#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// Where engines listen, as the files say. Whether they answer is a live fact.
struct EngineFacts {
  struct Socket {
    std::string path;
    sys::FileSeen seen;
    bool rootless = false;   // below the user's own runtime directory
    bool listening = false;  // a process listens on it (/proc/net/unix)
  };
  std::vector<Socket> sockets;             // those that exist
  std::vector<std::string> tcp_listeners;  // "0.0.0.0:2375": the ports Docker is known for
  std::string docker_group;                // its members, comma-separated
};

EngineFacts ReadEngineFacts(sys::FileTree& tree, uint32_t uid);

// Whether a /proc/net/unix text shows a process that listens on the socket `path`. Pure.
bool IsListening(std::string_view proc_net_unix, std::string_view path);

// The local addresses of a /proc/net/tcp or tcp6 text that listen on port 2375 or 2376. Pure.
std::vector<std::string> DockerListeners(std::string_view proc_net_tcp);

}  // namespace taskcell::probe
