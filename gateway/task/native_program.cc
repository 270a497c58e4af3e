#include "gateway/task/native_program.h"

#include <string>

#include "gateway/task/verdict.h"

namespace taskcell::gateway {

Status CheckNativeProgram(const Admission& admission) {
  if (admission.runtime == Runtime::kOpenAiCompat) return Ok();
  std::string why = WhyNoProgram(admission.root, admission.executable);
  if (why.empty()) return Ok();
  const cell::RootKind kind =
      admission.root.fd.valid() ? cell::RootKind::kRootfs : cell::RootKind::kHost;
  const std::string root = RootText(kind, admission.own_settings.root);
  return Error(Kind::kConfig, NoProgramText(admission.executable, root, why, admission.runtime))
      .Coded("invalid_config");
}

}  // namespace taskcell::gateway
