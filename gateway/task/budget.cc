#include "gateway/task/budget.h"

#include <algorithm>
#include <limits>

#include "gateway/ledger/month.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

Result<std::shared_ptr<Purse>> HoldToBudget(const Home& home, const Admission& admission,
                                            Surroundings& surroundings, TaskRecord& record,
                                            Payer& payer) {
  if (!payer.budget_cents.has_value() || admission.own_settings.prices.empty())
    return std::shared_ptr<Purse>();
  constexpr uint64_t kMicrocentsPerCent = 1'000'000;
  constexpr int64_t kMillis = 1000;
  const std::string month = MonthOf(UnixMilliseconds() / kMillis);
  const uint64_t most = std::numeric_limits<uint64_t>::max() / kMicrocentsPerCent;
  Broker* broker = TRY(surroundings.broker());
  // Before the ledger is read: what others enter there from now on is in the purse, too.
  std::shared_ptr<Purse> purse =
      broker->purses().Open(Text(home.label, " ", month, " ", payer.account));
  const uint64_t paid = TRY(record.PaidIn(month, payer.account));
  purse->Know(std::min(*payer.budget_cents, most) * kMicrocentsPerCent, paid);
  payer.route.payment = {purse, admission.own_settings.prices};
  return purse;
}

}  // namespace taskcell::gateway
