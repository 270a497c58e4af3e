#include "gateway/egress/route.h"

#include <cstring>

#include "launcher/base/text.h"

namespace taskcell::gateway {

Credential::~Credential() {
  // A short string moved from keeps its old bytes after the new terminator: the whole buffer goes.
  secret.resize(secret.capacity());
  ::explicit_bzero(secret.data(), secret.size());
}

std::string Upstream::Url() const {
  std::string url = https ? "https://" : "http://";
  bool is_ipv6 = host.find(':') != std::string::npos;
  url += is_ipv6 ? Text('[', host, ']') : host;
  if (port != (https ? 443 : 80)) url += Text(':', port);
  return url + prefix;
}

}  // namespace taskcell::gateway
