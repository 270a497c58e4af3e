#include "launcher/native/message.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::native {

void PrintMessage(std::string_view text) {
  // ignoring: there is no other place to say it
  (void)sys::WriteAll(STDERR_FILENO, Text("taskcell-launch: ", text, "\n"));
}

void PrintMessage(const Error& error) {
  PrintMessage(error.code.empty() ? error.text : Text(error.text, " (", error.code, ")"));
}

}  // namespace taskcell::native
