#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sys/stat.h>

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cell/compare_parts.h"
#include "launcher/cell/standard_stream.h"

namespace taskcell::cell {
namespace {

// Devices the kernel puts into every new network namespace by itself when a tunnel module is loaded
// on the host (net.core.fb_tunnels_only_for_init_net). Without CAP_NET_ADMIN nobody brings them up.
constexpr std::string_view kFallbackTunnels[] = {
    "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"};

bool IsIdleTunnel(const InterfaceSeen& interface) {
  bool named = std::find(std::begin(kFallbackTunnels), std::end(kFallbackTunnels),
                         interface.name) != std::end(kFallbackTunnels);
  return named && (interface.flags & IFF_UP) == 0;
}

void CompareInterfaces(const CellPlan& plan, const InsideAttestation& seen, Mismatches& found) {
  const bool has_bridge = plan.network == NetworkMode::kOpen;
  bool loopback = false;
  for (const InterfaceSeen& interface : seen.interfaces) {
    bool is_lo = interface.name == "lo" && (interface.flags & IFF_LOOPBACK) != 0;
    loopback = loopback || (is_lo && (interface.flags & IFF_UP) != 0);
    if (has_bridge || is_lo || IsIdleTunnel(interface)) continue;
    found.Add(Text("interface:", Printable(interface.name)), "none but lo",
              (interface.flags & IFF_UP) != 0 ? "up" : "there, down");
  }
  if (!loopback) found.Add("interface:lo", "up", "missing or down");
}

// In /proc/net/route the interface is the first word of a line, in ipv6_route the last; a line of
// headings starts with "Iface".
void CompareRoutes(const InsideAttestation& seen, Mismatches& found) {
  for (std::string_view line : Split(seen.routes, '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.empty() || words[0] == "Iface" || words[0] == "lo" || words.back() == "lo") continue;
    found.Add("routes", "none but lo's", Printable(line));
  }
}

void CompareNetwork(const CellPlan& plan, const InsideAttestation& seen, Mismatches& found) {
  bool wants_listener = ListenerCount(plan) > 0;
  if (wants_listener != (seen.listener_port != 0)) {
    found.Add("listener", wants_listener ? "a port" : "none", Text("port ", seen.listener_port));
  }
  if (plan.tunnels != (seen.tunnel_port != 0)) {
    found.Add("tunnel listener", plan.tunnels ? "a port" : "none", Text("port ", seen.tunnel_port));
  }
  CompareInterfaces(plan, seen, found);
  if (plan.network != NetworkMode::kOpen) CompareRoutes(seen, found);
}

bool IsLimitFile(const DescriptorSeen& descriptor) {
  bool cgroup =
      descriptor.filesystem == CGROUP_SUPER_MAGIC || descriptor.filesystem == CGROUP2_SUPER_MAGIC;
  return cgroup && S_ISREG(descriptor.mode) && descriptor.access == O_RDONLY;
}

void CompareDescriptors(const InsideAttestation& seen, Mismatches& found) {
  bool gate = false;
  for (const DescriptorSeen& descriptor : seen.descriptors) {
    if (descriptor.fd >= 0 && descriptor.fd <= 2) {
      std::string fault = StreamFault(descriptor, seen.landlock_abi > 0);
      if (fault.empty()) continue;
      found.Add(Text("descriptor:", descriptor.fd), "a file, pipe or terminal",
                Text(Printable(descriptor.target), ", which ", fault));
      continue;
    }
    if (IsLimitFile(descriptor)) continue;
    if (descriptor.fd > 2 && S_ISSOCK(descriptor.mode) && !gate) {
      gate = true;
      continue;
    }
    found.Add(Text("descriptor:", descriptor.fd), "closed", Printable(descriptor.target));
  }
  if (!gate) found.Add("descriptor:gate", "open", "none");
}

}  // namespace

void CompareChannels(const CellPlan& plan, const InsideAttestation& seen, Mismatches& found) {
  CompareNetwork(plan, seen, found);
  CompareDescriptors(seen, found);
}

}  // namespace taskcell::cell
