#pragma once

#include <array>
#include <span>

#include "probe/attack/payload.h"

namespace taskcell::attack {

// Makes the calling process notice SIGUSR1, so that its children see it: what the process 1 of a
// control does and no cell's.
Status NoticeSignals();

// The payloads by topic: each function is in the file of its name.
std::span<const Payload> PrivilegePayloads();
std::span<const Payload> NamespacePayloads();
std::span<const Payload> MountPayloads();
std::span<const Payload> ProcPayloads();
std::span<const Payload> FilePayloads();
std::span<const Payload> DevicePayloads();
std::span<const Payload> CgroupPayloads();
std::span<const Payload> InitPayloads();
std::span<const Payload> ProcessPayloads();
std::span<const Payload> IpcPayloads();
std::span<const Payload> NetworkPayloads();
std::span<const Payload> KernelPayloads();
std::span<const Payload> MemoryPayloads();
std::span<const Payload> LoadPayloads();
std::span<const Payload> DeadlinePayloads();
std::span<const Payload> RootPayloads();

inline std::array<std::span<const Payload>, 16> AllTopics() {
  return {PrivilegePayloads(), NamespacePayloads(), MountPayloads(),    ProcPayloads(),
          FilePayloads(),      DevicePayloads(),    CgroupPayloads(),   InitPayloads(),
          ProcessPayloads(),   IpcPayloads(),       NetworkPayloads(),  KernelPayloads(),
          MemoryPayloads(),    LoadPayloads(),      DeadlinePayloads(), RootPayloads()};
}

}  // namespace taskcell::attack
