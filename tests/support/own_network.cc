#include "tests/support/own_network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"

namespace taskcell::test {
namespace {

struct FreeNames {
  void operator()(struct if_nameindex* names) const { ::if_freenameindex(names); }
};

Status CheckNothingButLoopback() {
  const std::unique_ptr<struct if_nameindex, FreeNames> names(::if_nameindex());
  if (names == nullptr) return Error(Kind::kSystem, "the interfaces could not be listed");
  for (const struct if_nameindex* each = names.get(); each->if_index != 0; ++each)
    if (std::string(each->if_name) != "lo")
      return Error(Kind::kSystem,
                   Text("the network of this test's own has the interface ", each->if_name));
  return Ok();
}

// Where this process was before, for as long as it lives.
UniqueFd first_network;

Status Enter() {
  first_network = TRY(sys::Open("/proc/self/ns/net", O_RDONLY));
  TRY(sys::Unshare(CLONE_NEWNET));
  TRY(sys::SetLoopbackUp());
  return CheckNothingButLoopback();
}

}  // namespace

Status EnterOwnNetwork() {
  static const Status entered = Enter();
  return entered;
}

void ReturnToFirstNetwork() {
  if (first_network.valid() && ::setns(first_network.get(), CLONE_NEWNET) != 0) ::_exit(253);
}

}  // namespace taskcell::test
