// usage: taskcell-one-look HOME: one look at the home's queues, as the gateway takes one.
#include <cstdio>

#include "gateway/intake/intake.h"

int main(int argc, char** argv) {
  namespace gateway = taskcell::gateway;
  if (argc != 2) return 2;
  taskcell::Result<gateway::Home> home = gateway::OpenHome(argv[1]);
  if (!home.ok()) return 3;
  auto intake = gateway::Intake::Make(home.value());
  if (!intake.ok()) return 4;
  const std::vector<std::string> troubles = intake.value()->Look(true);
  for (const std::string& trouble : troubles) std::fprintf(stderr, "%s\n", trouble.c_str());
  return troubles.empty() ? 0 : 1;
}
