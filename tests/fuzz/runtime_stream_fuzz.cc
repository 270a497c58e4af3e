// The output of an AI program, which a tool can forge. First byte: which program, second: where the
// bytes are cut. However they are cut, the verdict is the same.
#include "gateway/runtimes/stream.h"
#include "launcher/base/text.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

constexpr gateway::Runtime kRuntimes[] = {gateway::Runtime::kClaude, gateway::Runtime::kCodex,
                                          gateway::Runtime::kOpenAiCompat,
                                          gateway::Runtime::kAntigravity, gateway::Runtime::kGrok};

gateway::ParsedRun InPieces(gateway::Runtime runtime, std::string_view out, std::size_t piece) {
  gateway::StreamReader reader(runtime, 30);
  while (!out.empty()) {
    if (!reader.TakeStdout(out.substr(0, piece))) break;
    out.remove_prefix(std::min(piece, out.size()));
  }
  return reader.Finish(0);
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  gateway::Runtime runtime = kRuntimes[fuzz::TakeByte(input) % std::size(kRuntimes)];
  std::size_t piece = std::size_t{fuzz::TakeByte(input)} + 1;
  gateway::ParsedRun whole = gateway::ParseRun(runtime, 30, input, "", 0);
  gateway::ParsedRun pieces = InPieces(runtime, input, piece);
  fuzz::Require(whole.outcome == pieces.outcome && whole.reply == pieces.reply);
  if (whole.reply) fuzz::Require(IsUtf8(*whole.reply));
  fuzz::Require(whole.outcome != gateway::StreamOutcome::kSuccess || whole.reply.has_value());
  return 0;
}
