#pragma once

#include <memory>
#include <string>

#include "launcher/base/result.h"

namespace taskcell::gateway {

struct TaskcellSettings;

inline constexpr std::size_t kMaxCertificateBytes = 4U << 20;  // of ca_file

// The operator's own way to the providers, where it is not the direct one.
struct Uplink {
  std::string proxy;  // "http://host:port" or "https://host:port"; empty: none
  // PEM, the only authorities trusted; nullptr: the system's.
  std::shared_ptr<const std::string> certificates;
};

// Reads what [taskcell] upstream_proxy and ca_file name. kConfig with the code invalid_config when
// the file can't be read, is larger than kMaxCertificateBytes or holds no certificate.
Result<Uplink> ReadUplink(const TaskcellSettings& settings);

}  // namespace taskcell::gateway
