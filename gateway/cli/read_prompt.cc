#include "gateway/cli/read_prompt.h"

#include <unistd.h>

#include <cerrno>

#include "gateway/task/prompt.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {

// A prompt from standard input is read to one byte past the bound, so that its refusal needs no
// more memory than that.
Result<std::string> ReadPrompt(const std::string& prompt) {
  if (prompt != "-") return prompt;
  Result<std::string> text = sys::ReadAllWithin(STDIN_FILENO, kMaxPromptBytes, -1);
  if (!text.ok() && text.error().err == EISDIR)
    return Error(Kind::kUsage, "standard input is a directory; give the prompt as an argument")
        .Coded(kInvalidPrompt);
  if (text.ok() || text.error().err != EFBIG) return text;
  return Error(Kind::kUsage,
               Text("the prompt on standard input has more than ", kMaxPromptBytes, " bytes"))
      .Coded(kInvalidPrompt);
}

}  // namespace taskcell::gateway
