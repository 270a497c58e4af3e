#include "launcher/cgroup/remedy.h"

#include "launcher/base/text.h"

namespace taskcell::cgroup {

std::string Names(const std::vector<Controller>& controllers) {
  std::string names;
  for (std::size_t i = 0; i < controllers.size(); ++i) {
    if (i > 0) names += i + 1 == controllers.size() ? " and " : ", ";
    names += Name(controllers[i]);
  }
  return names;
}

std::string DelegatedBelow(uid_t uid) { return Text("taskcell/uid-", uid); }

std::string TooLittleMemory(uint64_t bytes) {
  return Text("a memory limit of ", bytes,
              " bytes is too small for the cell itself, before any program: raise it. 2 MiB are "
              "enough for a program as small as /bin/true");
}

Error Unenforced(const std::vector<Controller>& controllers, Error cause) {
  if (cause.code == kUnenforced) return cause;
  if (cause.kind != Kind::kDenied) cause.kind = Kind::kUnsupported;
  return std::move(cause)
      .With(Text(
          "the ", Names(controllers),
          controllers.size() == 1 ? " limit cannot be enforced" : " limits cannot be enforced"))
      .Coded(kUnenforced);
}

Error WithoutScope(Error refusal, const Error& scope) {
  refusal.text += Text(" (no scope of the user's manager was to be had: ", scope.text, ")");
  return refusal;
}

}  // namespace taskcell::cgroup
