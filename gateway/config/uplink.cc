#include "gateway/config/uplink.h"

#include <fcntl.h>

#include <utility>

#include "gateway/config/taskcell_settings.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

Error Unusable(const TaskcellSettings& settings, std::string_view why) {
  return Error(Kind::kConfig,
               Text("[taskcell] ca_file `", Printable(settings.ca_file), "` ", why,
                    ": name a file of PEM certificates that the gateway's user may read"))
      .Coded("invalid_config");
}

}  // namespace

Result<Uplink> ReadUplink(const TaskcellSettings& settings) {
  Uplink uplink;
  uplink.proxy = settings.upstream_proxy;
  if (settings.ca_file.empty()) return uplink;
  Result<std::string> pem = sys::ReadFile(AT_FDCWD, settings.ca_file, kMaxCertificateBytes);
  if (!pem.ok()) return Unusable(settings, Text("can't be read (", pem.error().text, ")"));
  if (pem->find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    return Unusable(settings, "holds no certificate");
  uplink.certificates = std::make_shared<const std::string>(std::move(pem).value());
  return uplink;
}

}  // namespace taskcell::gateway
