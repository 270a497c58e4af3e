#pragma once

#include <cstdint>
#include <string>

namespace taskcell::live {

// Quantities for a person. All pure.

// "64 MiB", "62.9 MiB", "512 KiB", "17 B".
std::string ShowBytes(uint64_t bytes);

// Thousandths of a core as cores: "0.5", "2", "0.507".
std::string ShowCpuMillis(uint64_t cpu_millis);

// "EAGAIN"; "errno 999" for a number that is none.
std::string ErrnoName(int32_t err);

}  // namespace taskcell::live
