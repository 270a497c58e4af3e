#pragma once

#include "gateway/config/home.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// What makes a process the gateway of a home.
struct Instance {
  UniqueFd lock;      // <home>/locks/taskcell.lock, held as long as it is open
  UniqueFd listener;  // <home>/taskcell.sock, mode 0600
};

// Becomes the one gateway of a home: takes the lock, which the kernel gives back whatever ends this
// process, and binds the socket anew, however long the home's path is. Error code gateway_running
// when there is one. To be called before threads are.
Result<Instance> ClaimHome(const Home& home);

// Removes the socket, so that clients see at once that nobody serves this home.
void ReleaseHome(const Home& home);

}  // namespace taskcell::gateway
