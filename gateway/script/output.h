#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxKeptOutput = 1U << 20U;     // of each of the two streams
inline constexpr std::size_t kMaxScriptOutput = 64U << 20U;  // of both; more ends the script
inline constexpr std::string_view kTruncated = "\n...[truncated]";

// Keeps the beginning of what a script writes, its two streams apart, and goes on reading: a script
// is not to hang since nobody reads it.
class ScriptOutput : public gate::OutputSink {
 public:
  bool OnStdout(std::string_view bytes) override { return Take(out_, bytes); }
  bool OnStderr(std::string_view bytes) override { return Take(err_, bytes); }

  std::string_view out() const { return out_; }
  std::string_view err() const { return err_; }
  bool overflowed() const { return total_ > kMaxScriptOutput; }

 private:
  bool Take(std::string& kept, std::string_view bytes);

  std::string out_;  // one byte more than is kept shows that there was more
  std::string err_;
  std::size_t total_ = 0;
};

// The bytes as text of at most `limit` bytes: what is no UTF-8 becomes U+FFFD; a cut falls between
// characters and shows as kTruncated. `truncated` is set by a cut, and else left alone.
std::string KeptText(std::string_view bytes, std::size_t limit, bool& truncated);

}  // namespace taskcell::gateway
