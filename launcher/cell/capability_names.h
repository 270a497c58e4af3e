#pragma once

#include <cstdint>
#include <string>

namespace taskcell::cell {

// "cap_net_admin cap_sys_admin": the names of capabilities(7) for the bits of a set; the number for
// a bit without one. Pure.
std::string CapabilityNames(uint64_t set);

}  // namespace taskcell::cell
