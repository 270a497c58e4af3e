#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Before anything is made for a cell: a login that would end before a task of `timeout_ms` does is
// renewed, and `payer` has the new token. Error codes as RenewLogin; the text names the account.
Status RenewPayer(Payer& payer, const Admission& admission, uint64_t timeout_ms,
                  const Surroundings& surroundings, std::vector<std::string>& warnings);

// After a run with `token`: where the provider took it, the login it came from is proven.
void ProvePayer(const Payer& payer, const Admission& admission, const AccountLesson& lesson,
                std::string_view token);

// What a renewal that failed says about its account. Pure.
AccountLesson LessonOfRenewal(const Error& error);

}  // namespace taskcell::gateway
