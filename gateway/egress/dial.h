#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/config/allowed_host.h"
#include "gateway/config/uplink.h"
#include "gateway/egress/curl_multi.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// How a dial ended: with a connected socket, or with a code and why not.
struct DialEnd {
  UniqueFd fd;
  std::string_view code;  // "egress_unreachable", "egress_timeout", "egress_address"
  std::string message;    // for a person
};

// A TCP connection under way. Destroying it ends it without a word.
class Dial {
 public:
  virtual ~Dial() = default;
};

// Resolves `host` here, outside the cell, and connects to it within `seconds`. Each address is
// classified when it is dialled: one that is not public ends the dial, whatever the others are, and
// the address that was checked is the one that is connected to. With a proxy (http://) that is
// connected to, wherever it is, and asked for a tunnel to `host`: then it resolves the name, and
// which addresses are good is its business. Proxies of the environment are ignored. `done` is
// called once, from the event loop; it may destroy the dial.
Result<std::unique_ptr<Dial>> StartDial(CurlMulti* multi, const AllowedHost& host,
                                        const Uplink& uplink, int seconds,
                                        std::function<void(DialEnd)> done);

}  // namespace taskcell::gateway
