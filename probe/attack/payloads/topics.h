#pragma once

#include <array>
#include <span>

#include "probe/attack/payload.h"

namespace taskcell::attack {

// The payloads by topic: each function is in the file of its name.
std::span<const Payload> PrivilegePayloads();
std::span<const Payload> NamespacePayloads();
std::span<const Payload> KernelPayloads();

inline std::array<std::span<const Payload>, 3> AllTopics() {
  return {PrivilegePayloads(), NamespacePayloads(), KernelPayloads()};
}

}  // namespace taskcell::attack
