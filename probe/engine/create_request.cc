#include "probe/engine/create_request.h"

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr uint64_t kNanoCpusPerMilli = 1000000;
constexpr int kStopTimeoutSeconds = 1;
constexpr int64_t kMsPerSecond = 1000;

std::string Octal(uint32_t mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3)
    digits += static_cast<char>('0' + ((mode >> static_cast<unsigned>(shift)) & 7U));
  return digits;
}

void AppendStrings(JsonText& json, std::string_view key, const std::vector<std::string>& values) {
  json.Key(key).Open('[');
  for (const std::string& value : values) json.String(value);
  json.Close(']');
}

void AppendLabels(JsonText& json, const cell::CellPlan& plan) {
  int64_t deadline_s = (plan.deadline_unix_ms + kMsPerSecond - 1) / kMsPerSecond;
  json.Key("Labels").Open('{');
  json.Key(kLabelTask).String("1");
  json.Key(kLabelRun).String(plan.run_id);
  json.Key(kLabelAgent).String(plan.agent);
  json.Key(kLabelHome).String(plan.home_label);
  json.Key(kLabelDeadline).String(std::to_string(deadline_s));
  json.Close('}');
}

void AppendUlimit(JsonText& json, std::string_view name, uint64_t value) {
  json.Open('{').Key("Name").String(name).Key("Soft").Unsigned(value).Key("Hard").Unsigned(value);
  json.Close('}');
}

// The owner's rights for everybody.
uint32_t ForAll(uint32_t mode) {
  uint32_t owners = (mode >> 6U) & 7U;
  return mode | owners << 3U | owners;
}

std::string TmpfsOptions(const cell::PlannedTmpfs& tmpfs, const CreateRequest& request) {
  std::string options = Text(tmpfs.read_only ? "ro," : "rw,", tmpfs.exec ? "exec" : "noexec",
                             ",nosuid,nodev,size=", tmpfs.size_bytes, ",mode=");
  if (request.podman)
    return Text(options, Octal(tmpfs.read_only ? tmpfs.mode : ForAll(tmpfs.mode)), ",notmpcopyup");
  return Text(options, Octal(tmpfs.mode), ",uid=", request.plan.uid, ",gid=", request.plan.gid);
}

// Docker does not let a read-only one take the place of an image's VOLUME here.
bool IsAmongMounts(const cell::PlannedTmpfs& tmpfs, const CreateRequest& request) {
  return tmpfs.read_only && !request.podman;
}

void AppendTmpfs(JsonText& json, const CreateRequest& request) {
  json.Key("Tmpfs").Open('{');
  for (const cell::PlannedTmpfs& tmpfs : request.plan.tmpfs) {
    if (!IsAmongMounts(tmpfs, request)) json.Key(tmpfs.target).String(TmpfsOptions(tmpfs, request));
  }
  json.Close('}');
}

// Read-only tmpfs go the other way an engine knows: only there they take the place of an image's
// VOLUME, so that no volume is ever made.
void AppendMounts(JsonText& json, const CreateRequest& request) {
  const cell::CellPlan& plan = request.plan;
  json.Key("Mounts").Open('[');
  for (const cell::PlannedMount& mount : plan.mounts) {
    json.Open('{').Key("Type").String("bind").Key("Source").String(mount.source);
    json.Key("Target").String(mount.target).Key("ReadOnly").Bool(true);
    // No CreateMountpoint: a source that is gone must fail. NonRecursive: nothing that is mounted
    // below the source comes along.
    json.Key("BindOptions").Open('{').Key("Propagation").String("rprivate");
    json.Key("NonRecursive").Bool(true).Close('}').Close('}');
  }
  for (const cell::PlannedTmpfs& tmpfs : plan.tmpfs) {
    if (!IsAmongMounts(tmpfs, request)) continue;
    json.Open('{').Key("Type").String("tmpfs").Key("Target").String(tmpfs.target);
    json.Key("ReadOnly").Bool(true).Key("TmpfsOptions").Open('{');
    json.Key("SizeBytes").Unsigned(tmpfs.size_bytes).Key("Mode").Unsigned(tmpfs.mode);
    json.Close('}').Close('}');
  }
  json.Close(']');
}

void AppendHostConfig(JsonText& json, const CreateRequest& request) {
  const cell::CellPlan& plan = request.plan;
  json.Key("HostConfig").Open('{');
  json.Key("AutoRemove").Bool(true);
  json.Key("Init").Bool(false);
  json.Key("NetworkMode").String(plan.network == cell::NetworkMode::kOpen ? "bridge" : "none");
  json.Key("ReadonlyRootfs").Bool(true);
  AppendStrings(json, "CapDrop", {"ALL"});
  AppendStrings(json, "SecurityOpt", {"no-new-privileges:true"});
  json.Key("IpcMode").String("private");
  json.Key("CgroupnsMode").String("private");
  json.Key("Memory").Unsigned(plan.limits.memory_bytes);
  json.Key("MemorySwap").Unsigned(plan.limits.memory_bytes);  // memory and swap together
  json.Key("PidsLimit").Unsigned(plan.limits.pids);
  json.Key("NanoCpus").Unsigned(plan.limits.cpu_millis * kNanoCpusPerMilli);
  json.Key("Ulimits").Open('[');
  AppendUlimit(json, "core", cell::kCoreBytes);
  AppendUlimit(json, "nofile", plan.limits.nofile);
  json.Close(']');
  json.Key("LogConfig").Open('{').Key("Type").String("none").Close('}');
  AppendTmpfs(json, request);
  AppendMounts(json, request);
  json.Close('}');
}

Status CheckSayable(const CreateRequest& request) {
  const cell::CellPlan& plan = request.plan;
  TRY(cell::CheckPlan(plan));
  if (plan.root != cell::RootKind::kImage)
    return Error(Kind::kConfig, "an engine's cell needs an image as its root");
  for (const cell::PlannedMount& mount : plan.mounts) {
    std::string shown = Printable(mount.source);
    if (!IsUtf8(mount.source) || !IsUtf8(mount.target)) {
      return Error(Kind::kConfig, Text("'", shown,
                                       "' is not UTF-8: its name can't be told to the "
                                       "engine; rename it"));
    }
    if (mount.writable)
      return Error(Kind::kConfig, Text("'", shown, "': an engine's mounts are read-only"));
  }
  return Ok();
}

}  // namespace

std::string ContainerName(const std::string& run_id) { return "dudu-task-" + run_id; }

Result<CreateCall> EncodeCreate(const CreateRequest& request) {
  TRY(CheckSayable(request));
  const cell::CellPlan& plan = request.plan;
  JsonText json;
  json.Open('{');
  json.Key("Image").String(request.image_id);
  AppendStrings(json, "Entrypoint", request.entrypoint);
  AppendStrings(json, "Cmd", {});
  json.Key("User").String(Text(plan.uid, ":", plan.gid));
  json.Key("Hostname").String(plan.hostname);
  // Not the plan's: that is the job's, and an engine would make the directory in the image's root,
  // whose mode then wins over the one asked for the tmpfs.
  json.Key("WorkingDir").String("/");
  // A bare name unsets what the image sets: PID 1 starts without LD_PRELOAD and its like.
  AppendStrings(json, "Env", request.image_environment);
  json.Key("Healthcheck").Open('{');
  AppendStrings(json, "Test", {"NONE"});
  json.Close('}');
  json.Key("StopSignal").String("SIGKILL");
  json.Key("StopTimeout").Number(kStopTimeoutSeconds);
  json.Key("AttachStdin").Bool(false).Key("AttachStdout").Bool(false);
  json.Key("AttachStderr").Bool(false).Key("OpenStdin").Bool(false).Key("Tty").Bool(false);
  AppendLabels(json, plan);
  AppendHostConfig(json, request);
  json.Close('}');
  return CreateCall{ContainerName(plan.run_id), json.text()};
}

}  // namespace taskcell::probe
