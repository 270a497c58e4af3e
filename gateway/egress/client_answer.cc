// What a ClientConnection does with the provider's answer: checks, cleans and frames it for the
// cell.
#include "gateway/egress/answer_head.h"
#include "gateway/egress/client_connection.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

// Of an answer, unread by the cell: from there on the provider is stopped.
constexpr std::size_t kHighWater = 256U << 10;

std::string Hex(std::size_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value > 0);
  return digits;
}

}  // namespace

void ClientConnection::OnSend() { record_.relayed = true; }

Intake ClientConnection::OnAnswer(const UpstreamAnswer& answer) {
  record_.upstream_status = answer.status;
  failure_ = CheckAnswer(answer);
  if (failure_) return Intake::kAbort;
  if (const std::string* after = answer.Find("retry-after"); after && answer.status == 429)
    session_->NoteRetryAfter(static_cast<int64_t>(ParseUnsigned(*after).value_or(0) % 1'000'000));
  BeginStream(answer);
  return Intake::kTaken;
}

void ClientConnection::BeginStream(const UpstreamAnswer& answer) {
  const std::string* type = answer.Find("content-type");
  reader_.emplace(session_->route().api, type != nullptr && type->starts_with("text/event-stream"));
  bool echoes = false;
  std::string headers = AnswerHeaderLines(answer, session_->route().credential.secret, &echoes);
  if (echoes) session_->NoteEcho();
  record_.status = answer.status;
  out_ += Text("HTTP/1.1 ", answer.status, " ", StatusPhrase(answer.status), "\r\n", headers,
               "transfer-encoding: chunked\r\n", closes_ ? "connection: close\r\n" : "", "\r\n");
  is_streaming_ = true;
}

Intake ClientConnection::OnBytes(std::string_view bytes) {
  if (!is_streaming_) return Intake::kAbort;  // of no answer: nobody reads them
  if (out_.size() - sent_ >= kHighWater) {
    waits_ = true;
    return Intake::kWait;
  }
  if (!session_->CountDown(bytes.size())) {
    failure_ = Exhausted("egress_bytes", "the task has received all the bytes it may");
    return Intake::kAbort;
  }
  std::string clean;
  bool goes_on = scanner_->Pass(bytes, &clean);
  if (!clean.empty()) SendChunk(clean);
  if (!goes_on) {
    session_->NoteEcho();
    failure_ = Refusal{502, "egress_credential_echo",
                       "the provider sent the credential back; its answer was cut"};
    return Intake::kAbort;
  }
  return Intake::kTaken;
}

// Nothing waits for more to arrive, not even a head for its first event, which may take the model
// minutes; and what has arrived together leaves together.
void ClientConnection::OnPause() {
  if (!Flush()) return Close();
  AfterFlush();
}

void ClientConnection::SendChunk(std::string_view bytes) {
  reader_->Take(bytes);
  record_.bytes_down += bytes.size();
  out_ += Hex(bytes.size());
  out_ += "\r\n";
  out_ += bytes;
  out_ += "\r\n";
}

void ClientConnection::OnEnd(const UpstreamEnd& end) {
  transfer_.reset();
  waits_ = false;
  if (!failure_ && !end.code.empty()) {
    int status = end.code == "egress_timeout" ? 504 : 502;
    failure_ = Refusal{status, end.code, end.message};
  }
  if (failure_) return FailAnswer(*failure_);
  std::string rest;
  scanner_->Finish(&rest);
  if (!rest.empty()) SendChunk(rest);
  out_ += "0\r\n\r\n";
  Record();
  Enter(State::kFlushing, session_->route().limits.client_stall_seconds);
  if (!Flush()) return Close();
  AfterFlush();
}

void ClientConnection::FailAnswer(const Refusal& refusal) {
  is_refused_ = refusal.code == "egress_bytes";  // the cell's bound, not the provider's fault
  is_failed_ = !is_refused_;
  if (!is_streaming_) return Refuse(refusal, true);
  // Its head is out: a missing last chunk tells the program that the answer is not whole.
  record_.code = refusal.code;
  (void)Flush();  // ignoring: the connection ends either way
  BeginDraining();
}

void ClientConnection::Refuse(const Refusal& refusal, bool closes) {
  record_.code = refusal.code;
  is_refused_ = is_refused_ || state_ != State::kRelaying;
  Answer(RefusalStatus(session_->route().api, refusal), RefusalHeaders(refusal),
         RefusalBody(session_->route().api, refusal), closes);
}

void ClientConnection::Answer(int status, std::string_view headers, std::string_view body,
                              bool closes) {
  record_.status = status;
  closes_ = closes;
  bool has_body = head_.method != "HEAD";
  out_ += Text("HTTP/1.1 ", status, " ", StatusPhrase(status), "\r\n", headers);
  if (!body.empty()) out_ += "content-type: application/json\r\n";
  out_ += Text("content-length: ", body.size(), "\r\n");
  if (closes) out_ += "connection: close\r\n";
  out_ += "\r\n";
  if (has_body) out_ += body;
  Record();
  Enter(State::kFlushing, session_->route().limits.client_stall_seconds);
  if (!Flush()) return Close();
  AfterFlush();
}

}  // namespace taskcell::gateway
