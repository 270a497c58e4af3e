// usage: taskcell-one-receipt HOME add|remove: appends a receipt to the home's chain, or removes
// all but what fits 600 bytes.
#include <fcntl.h>

#include <cstdio>
#include <string_view>

#include "gateway/ledger/receipt_chain.h"
#include "gateway/ledger/receipt_retention.h"
#include "launcher/sys/file.h"

namespace {

using taskcell::Status;
namespace gateway = taskcell::gateway;

Status Do(std::string_view what, int home_fd, gateway::Ledger& ledger) {
  constexpr uint64_t kBytes = 600;
  if (what == "add")
    return gateway::AppendReceipt(home_fd, ledger,
                                  R"({"run_id":"00112233445566778899aabbccddeeff","x":1})",
                                  gateway::WallClock::now());
  TRY(gateway::RemoveOldReceipts(home_fd, ledger, {"", kBytes}, false));
  return taskcell::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  taskcell::Result<taskcell::UniqueFd> home = taskcell::sys::Open(argv[1], O_RDONLY | O_DIRECTORY);
  if (!home.ok()) return 3;
  taskcell::Result<gateway::Ledger> ledger = gateway::Ledger::Open(home->get(), argv[1]);
  if (!ledger.ok()) return 4;
  Status done = Do(argv[2], home->get(), ledger.value());
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().text.c_str());
  return done.ok() ? 0 : 1;
}
