#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/egress/route.h"

namespace taskcell::gateway {

// What a provider's answer says about itself. Everything in it is the provider's word, printable
// and bounded.
struct AnswerFacts {
  uint64_t input_tokens = 0;        // with the next two
  uint64_t cached_tokens = 0;       // read from the provider's cache
  uint64_t cache_write_tokens = 0;  // written to it
  uint64_t output_tokens = 0;
  std::string finish;
  std::string error_type;
  std::vector<std::string> tools_called;
  uint64_t unread = 0;  // answers or events too large or not JSON

  // Whether the model has said why it stopped; a response says before that it is in progress.
  bool IsEnded() const { return !finish.empty() && finish != "in_progress" && finish != "queued"; }
};

// Reads along while an answer is streamed to the cell: server-sent events or one JSON document, of
// any of the three APIs. Never fails: what it can't read it counts.
class AnswerReader {
 public:
  AnswerReader(WireApi api, bool is_event_stream) : api_(api), is_event_stream_(is_event_stream) {}

  void Take(std::string_view bytes);
  // Reads what is left when the answer has ended.
  void Finish();

  const AnswerFacts& facts() const { return facts_; }

 private:
  void TakeLine(std::string_view line);
  void ReadDocument(std::string_view text);

  WireApi api_;
  bool is_event_stream_;
  std::string pending_;  // a line not yet ended, or the document so far
  bool overflows_ = false;
  std::string event_;  // the data lines of the event so far
  AnswerFacts facts_;
};

}  // namespace taskcell::gateway
