#include "seccomp/default_filter.h"

namespace taskcell::seccomp {

Program DefaultFilter() {
#if defined(__x86_64__)
  return DefaultFilter(Architecture::kX86_64);
#elif defined(__aarch64__)
  return DefaultFilter(Architecture::kAarch64);
#else
#error "taskcell has a seccomp profile for x86_64 and aarch64 only"
#endif
}

}  // namespace taskcell::seccomp
