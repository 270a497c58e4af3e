#include "gateway/runtimes/plan_job.h"

namespace taskcell::gateway {

std::vector<std::string> ModelsFor(Runtime, std::string_view model) { return {std::string(model)}; }

}  // namespace taskcell::gateway
