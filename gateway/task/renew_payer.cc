#include "gateway/task/renew_payer.h"

#include <utility>

#include "gateway/config/secret.h"
#include "gateway/task/cancel.h"
#include "gateway/task/renew_login.h"
#include "gateway/task/task_record.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

Status RenewPayer(Payer& payer, const Admission& admission, uint64_t timeout_ms,
                  const Surroundings& surroundings, std::vector<std::string>& warnings) {
  if (!payer.login.has_value()) return Ok();
  constexpr int64_t kMillis = 1000;
  SecretText& secret = payer.route.credential.secret;
  RenewalTerms terms;
  terms.provider = admission.provider;
  terms.access_token = secret;
  terms.needed_until = UnixMilliseconds() / kMillis + kTokenSlackSeconds +
                       static_cast<int64_t>(timeout_ms) / kMillis;
  terms.uplink = admission.uplink;
  terms.is_cancelled = [&surroundings] { return IsCancelled(surroundings); };
  std::vector<std::string> notes;
  Result<std::optional<SecretText>> renewed = RenewLogin(*payer.login, terms, notes);
  const std::string account = Text("account `", Printable(payer.account), "`");
  for (const std::string& note : notes) warnings.push_back(Text(account, ": ", note));
  if (!renewed.ok())
    return std::move(renewed).error().With(Text(account, ": its login could not be renewed"));
  if (!renewed->has_value()) return Ok();
  if (surroundings.report_progress)
    surroundings.report_progress(Text(account, ": its login was renewed"));
  secret = *std::move(renewed).value();
  payer.route.credential.account = payer.login->account;
  payer.fingerprint = FingerprintOf(payer.account, secret);
  return Ok();
}

void ProvePayer(const Payer& payer, const Admission& admission, const AccountLesson& lesson,
                std::string_view token) {
  if (payer.login.has_value() && lesson.outcome == AccountOutcome::kSuccess)
    ProveLogin(*payer.login, admission.provider, token);
}

AccountLesson LessonOfRenewal(const Error& error) {
  AccountLesson lesson;
  if (error.code == "auth_failed") lesson.outcome = AccountOutcome::kAuthFailed;
  if (error.code == "provider_unavailable") lesson.outcome = AccountOutcome::kError;
  lesson.may_try_another = lesson.outcome.has_value();
  return lesson;
}

}  // namespace taskcell::gateway
