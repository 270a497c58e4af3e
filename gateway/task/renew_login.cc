#include "gateway/task/renew_login.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "gateway/config/document_file.h"
#include "gateway/config/home.h"
#include "gateway/config/oauth_document.h"
#include "gateway/config/secret.h"
#include "gateway/egress/token_request.h"
#include "gateway/ledger/lock_file.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// Another one's renewal may ask twice.
constexpr auto kLockWait = 2 * kTokenAnswerWait + std::chrono::seconds(10);

Status TakeLock(int fd, const RenewalTerms& terms) {
  constexpr std::chrono::milliseconds kSlice{500};
  const auto until = std::chrono::steady_clock::now() + kLockWait;
  while (true) {
    Status locked = LockWithin(fd, kSlice);
    if (locked.ok()) return locked;
    if (terms.is_cancelled()) return Error(Kind::kSystem, "stopped").Coded("stopped");
    if (std::chrono::steady_clock::now() >= until)
      return Error(Kind::kSystem, "another renewal of this login does not end")
          .Coded("provider_unavailable");
  }
}

// A document of one file, locked, as long as it lives.
class LockedDocument {
 public:
  static Result<LockedDocument> Take(const OauthLogin& login, const RenewalTerms& terms) {
    DocumentFile file = TRY(DocumentFile::Pin(login.file));
    UniqueFd lock = TRY(file.OpenLock());
    TRY(TakeLock(lock.get(), terms));
    LockedDocument taken(std::move(file), std::move(lock), terms);
    TRY(taken.Load());
    TRY(taken.FinishWhatWasLeft());
    return taken;
  }

  const OauthDocument& document() const { return document_; }
  // Asks for new tokens and puts them in the document's place.
  Status Renew(const TokenEndpoint& endpoint, std::vector<std::string>& warnings);

 private:
  LockedDocument(DocumentFile file, UniqueFd lock, const RenewalTerms& terms)
      : file_(std::move(file)), lock_(std::move(lock)), terms_(&terms) {}

  Status Load() {
    const SecretText text = TRY(file_.Read());
    document_ = TRY(ReadOauthDocument(text, terms_->provider));
    digest_ = ShortDigest(text);
    return Ok();
  }

  Status FinishWhatWasLeft() {
    const std::optional<SecretText> left = TRY(file_.ReadUnfinished());
    if (!left.has_value()) return Ok();
    if (!ReadOauthDocument(*left, terms_->provider).ok()) return Ok();  // not written whole
    const bool has_previous = TRY(HasPrevious());
    TRY(file_.FinishReplacing(has_previous));
    return Load();
  }

  Result<bool> HasPrevious() { return TRY(file_.ReadPrevious(document_.previous)).has_value(); }

  Result<SecretText> Ask(const TokenEndpoint& endpoint, std::string_view refresh_token) {
    return AskForTokens(endpoint, refresh_token, terms_->uplink, terms_->is_cancelled);
  }
  Result<SecretText> AskWithEither(const TokenEndpoint& endpoint);

  DocumentFile file_;
  UniqueFd lock_;
  const RenewalTerms* terms_;
  OauthDocument document_;
  std::string digest_;
};

Result<SecretText> LockedDocument::AskWithEither(const TokenEndpoint& endpoint) {
  Result<SecretText> answer = Ask(endpoint, document_.refresh_token);
  if (answer.ok() || answer.error().code != "auth_failed") return answer;
  const std::optional<SecretText> previous = TRY(file_.ReadPrevious(document_.previous));
  if (!previous.has_value()) return answer;
  Result<OauthDocument> old = ReadOauthDocument(*previous, terms_->provider);
  const bool is_another =
      old.ok() && !old->refresh_token.empty() && old->refresh_token != document_.refresh_token;
  return is_another ? Ask(endpoint, old->refresh_token) : answer;
}

Status LockedDocument::Renew(const TokenEndpoint& endpoint, std::vector<std::string>& warnings) {
  const SecretText present = TRY(file_.Read());
  TRY(file_.TryToWrite(present).With("a renewed login could not be kept"));
  const SecretText answer = TRY(AskWithEither(endpoint));
  Result<RenewedTokens> tokens = ReadTokenAnswer(answer);
  if (!tokens.ok()) return std::move(tokens).error().Coded("provider_unavailable");
  const bool has_previous = TRY(HasPrevious());
  const SecretText renewed =
      TRY(RenewDocument(present, terms_->provider, tokens.value(), ::time(nullptr),
                        has_previous ? document_.previous : digest_));
  Status kept = file_.Replace(renewed, has_previous);
  // The old one may be burnt by now: with the new one at least this task can work.
  if (!kept.ok())
    warnings.push_back(Text("a renewed login could not be kept, so it must be signed in anew: ",
                            kept.error().text));
  document_ = TRY(ReadOauthDocument(renewed, terms_->provider));
  return Ok();
}

Result<std::optional<SecretText>> RenewNow(OauthLogin& login, const RenewalTerms& terms,
                                           std::vector<std::string>& warnings) {
  LockedDocument locked = TRY(LockedDocument::Take(login, terms));
  const OauthDocument& document = locked.document();
  const bool is_another_fresh = document.access_token != terms.access_token &&
                                document.expires_at > ::time(nullptr) + kTokenSlackSeconds;
  if (!is_another_fresh) TRY(locked.Renew(login.endpoint, warnings));
  login.expires_at = document.expires_at;
  login.account = document.account;
  return std::optional<SecretText>(document.access_token);
}

}  // namespace

Result<std::optional<SecretText>> RenewLogin(OauthLogin& login, const RenewalTerms& terms,
                                             std::vector<std::string>& warnings) {
  const bool is_due = login.refused || login.expires_at <= terms.needed_until;
  if (!is_due || !login.CanBeRenewed()) return std::optional<SecretText>();
  Result<std::optional<SecretText>> renewed = RenewNow(login, terms, warnings);
  if (renewed.ok()) return renewed;
  Error error = std::move(renewed).error();
  const bool lasts = login.expires_at > ::time(nullptr) + kTokenSlackSeconds;
  if (lasts && !login.refused && error.code != "stopped") {
    warnings.push_back(
        Text("its login could not be renewed and may end before the task: ", error.text));
    return std::optional<SecretText>();
  }
  if (error.code.empty()) error.code = "workspace_failed";
  return error;
}

void ProveLogin(const OauthLogin& login, std::string_view provider, std::string_view access_token) {
  if (!login.CanBeRenewed()) return;
  Result<DocumentFile> file = DocumentFile::Pin(login.file);
  if (!file.ok()) return;
  Result<UniqueFd> lock = file->OpenLock();
  if (!lock.ok() || !LockWithin(lock->get(), std::chrono::milliseconds(0)).ok()) return;
  Result<SecretText> text = file->Read();
  if (!text.ok()) return;
  Result<OauthDocument> document = ReadOauthDocument(text.value(), provider);
  if (!document.ok() || document->access_token != access_token) return;
  (void)file->ForgetPrevious();  // ignoring: the next success tries again
}

}  // namespace taskcell::gateway
