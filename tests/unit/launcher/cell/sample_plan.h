#pragma once

#include "launcher/cell/cell_plan.h"

namespace taskcell::cell {

// A plan in which no field has its default value.
inline CellPlan SamplePlan() {
  CellPlan plan;
  plan.run_id = "0123456789abcdef0123456789abcdef";
  plan.agent = "agent-1";
  plan.home_label = "fedcba9876543210fedcba9876543210";
  plan.deadline_unix_ms = 1'800'000'000'123;
  plan.uid = 100123;
  plan.gid = 100124;
  plan.root = RootKind::kImage;
  plan.root_source = "duduclaw/agent:latest";
  plan.mounts = {
      {"/home/alice/snap/agent", "/agent", EntryKind::kDirectory, 65024, 7001, false},
      {"/usr/libexec/taskcell/taskcell-init", "/run/taskcell/init", EntryKind::kFile, 65024, 7002,
       false},
  };
  plan.mounts[1].follows_links = false;
  plan.proc_is_subset = true;
  plan.tmpfs = {
      {"/tmp", 256U << 20U, 01777, true, false},
      {"/workspace", 512U << 20U, 0700, true, false},
  };
  plan.limits = {64U << 20U, 32, 500, 256};
  plan.limits.file_bytes = 8U << 20U;
  plan.limits.io_weight = 50;
  plan.limits.cpu_set = "0-1,3";
  plan.limits.oom_group = true;
  plan.network = NetworkMode::kProvider;
  plan.hostname = "cell";
  plan.working_directory = "/workspace/sub";
  plan.image_environment = {"NODE_VERSION"};
  return plan;
}

}  // namespace taskcell::cell
