#include "launcher/native/message.h"

#include "launcher/base/text.h"
#include "launcher/sys/output.h"

namespace taskcell::native {

void PrintMessage(std::string_view text) { sys::PrintMessage("taskcell-launch", text); }

void PrintMessage(const Error& error) {
  PrintMessage(error.code.empty() ? error.text : Text(error.text, " (", error.code, ")"));
}

}  // namespace taskcell::native
