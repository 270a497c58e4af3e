#include "tests/engine/task_engine.h"

namespace taskcell::test {

constinit const std::string_view kTaskEngine = "native";

}  // namespace taskcell::test
