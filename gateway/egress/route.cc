#include "gateway/egress/route.h"

#include "launcher/base/text.h"

namespace taskcell::gateway {

std::string Upstream::Url() const {
  std::string url = https ? "https://" : "http://";
  bool is_ipv6 = host.find(':') != std::string::npos;
  url += is_ipv6 ? Text('[', host, ']') : host;
  if (port != (https ? 443 : 80)) url += Text(':', port);
  return url + prefix;
}

}  // namespace taskcell::gateway
