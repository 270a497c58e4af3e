#include "gateway/task/public_text.h"

#include <array>
#include <string_view>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

struct Fixed {
  std::string_view code;
  std::string_view text;
  std::string_view joint = "; ";  // before a cause
};
constexpr auto kFixed = std::to_array<Fixed>({
    {"docker_unreachable", "Docker is not reachable (is the Docker daemon running?)"},
    {"engine_unsupported", "the engine answers, but cannot be used"},
    {"image_missing", "the sandbox image is not on this machine"},
    {"resource_limits_unenforced",
     "the limits of the cell cannot be enforced: delegate the cgroup controllers to the "
     "user the engine runs as (taskcell-probe delegate prints how)"},
    {"container_refused", "sandbox container refused", ": "},
    {"container_create_failed",
     "the sandbox container could not be created (docker create failed)"},
    {"cell_mismatch", "the cell is not what was planned, so nothing ran in it"},
    {"workspace_failed", "the sandbox workspace could not be created"},
    {"agent_dir_unmountable", "the agent directory cannot be mounted"},
    {"transport_failed", "the sandbox run failed before the CLI finished"},
    {"internal_error", "a fault of the gateway ended the task"},
});

// A cause, by the words of ours that name it.
struct Cause {
  std::string_view code;
  std::string_view words;
  std::string_view told = {};   // empty: what begins with the words, which must begin the text ...
  std::string_view until = {};  // ... up to and with these
};
constexpr auto kCauses = std::to_array<Cause>({
    {"docker_unreachable", "there is no socket",
     "there is no socket: start Docker (or `systemctl --user start podman.socket`), or name its "
     "socket in DOCKER_HOST or in config.toml [taskcell] engine_socket"},
    {"docker_unreachable", "it is no socket",
     "what is named is no socket: name the engine's in DOCKER_HOST or in config.toml [taskcell] "
     "engine_socket"},
    {"docker_unreachable", "nothing listens on it",
     "the socket is there but nothing listens on it: start Docker"},
    {"docker_unreachable", "this user may not use the socket",
     "this user may not use the socket: let it run `docker version` first (group docker)"},
    {"docker_unreachable", "can't share a socket with this host",
     "the engine can't share a socket with this host: one in a virtual machine, on another host or "
     "with a kernel of its own cannot be used"},
    {"docker_unreachable", "(userns-remap)",
     "it maps the ids of its containers (userns-remap): run a daemon without that beside it, or a "
     "rootless engine, and name its socket in [taskcell] engine_socket"},
    {"docker_unreachable", "set [taskcell] engine = ",
     "another engine answers than [taskcell] engine names: set that to \"auto\", or name the "
     "other's socket in [taskcell] engine_socket"},
    {"docker_unreachable", "runs in a container (",
     "the gateway runs in a container that does not share enough with the host: doctor names what"},
    {"docker_unreachable", "the engine hangs", "the engine hangs: restart it, and see its log"},
    {"docker_unreachable", "the engine died or was restarted",
     "the engine died or was restarted: see its log"},
    {"docker_unreachable", "this is no Docker engine", "what answers is no Docker engine"},
    {"docker_unreachable", "refuses this: allow it there",
     "something before the engine (an authorization plugin, a proxy of its socket) refuses this: "
     "allow it there"},
    {"engine_unsupported", "; update the engine", "its API is too old: update the engine"},
    {"engine_unsupported", "; update taskcell", "its API is too new: update taskcell"},
    {"image_missing", "engine \"native\" has no images",
     "engine \"native\" has none: set [taskcell] root to \"host\" or a directory"},
    {"image_missing", "run `docker pull ", {}, "(it is never pulled automatically)"},
    {"resource_limits_unenforced",
     "the engine made the container with other limits than asked",
     {},
     ")"},
    {"resource_limits_unenforced",
     "the engine runs rootless and does not enforce limits (",
     {},
     ")"},
    {"resource_limits_unenforced", "the cell was made, but its limits are not in force (", {}, ")"},
    {"resource_limits_unenforced", "SELinux labels this engine's containers",
     "the engine runs rootless, and SELinux denies the container that was to check its limits its "
     "files: see taskcell-gateway(8), SELINUX"},
    {"resource_limits_unenforced", "that was to check its limits did not finish",
     "the engine runs rootless, and the container that was to check its limits did not finish"},
    {"container_refused", "the gateway runs as root (uid or gid 0)", {}, "normal user"},
    {"container_refused", "VOLUME",
     "the image declares VOLUMEs that can't be covered in a cell; use another image"},
    {"container_create_failed", "[container.sandbox] ", {}, "change it"},
    {"container_create_failed", "SELinux labels this engine's containers",
     "SELinux denies the cell its files: see taskcell-gateway(8), SELINUX"},
    {"cell_mismatch", "SELinux labels this engine's containers",
     "where SELinux denies the cell its files: see taskcell-gateway(8), SELINUX"},
    {"workspace_failed", "No space left on device", "there is no room on the disk"},
    {"workspace_failed", "disk is full", "there is no room on the disk"},
    {"workspace_failed", "is audited, and that failed",
     "a weaker mode of the configuration is audited, and that failed"},
    {"internal_error", "ran out of something it needs",
     "it ran out of something it needs (memory, threads): see its limits and those of its cgroup"},
    {"internal_error", "the kernel takes at most 128 KiB less one",
     "one argument or variable of a program may have at most 128 KiB; hand over more on standard "
     "input"},
    {"agent_dir_unmountable", "chmod go-w",
     "others may write on the way to it: chmod go-w what the gateway's log names"},
    {"agent_dir_unmountable", "SOUL.md has more than ", {}, " bytes"},
    {"agent_dir_unmountable", "IDENTITY.md has more than ", {}, " bytes"},
});

// The cause as it may be told; empty where the text does not name it.
std::string_view Told(const Cause& cause, std::string_view text) {
  const std::size_t at = text.find(cause.words);
  if (at == std::string_view::npos) return "";
  if (!cause.told.empty()) return cause.told;
  if (at != 0) return "";
  const std::size_t end = text.find(cause.until, cause.words.size());
  return end == std::string_view::npos ? "" : text.substr(0, end + cause.until.size());
}

// What is put before a text that a copied cause begins.
std::string_view WithoutHead(std::string_view text, std::string_view head) {
  return text.starts_with(head) ? text.substr(head.size()) : text;
}

}  // namespace

std::string PublicText(const Error& error) {
  const std::string_view code = error.code.empty() ? "internal_error" : error.code;
  for (const Fixed& fixed : kFixed) {
    if (fixed.code != code) continue;
    const std::string_view text = WithoutHead(error.text, Text(fixed.text, fixed.joint));
    for (const Cause& cause : kCauses) {
      const std::string_view told = cause.code == code ? Told(cause, text) : "";
      if (!told.empty()) return Text(fixed.text, fixed.joint, told);
    }
    return std::string(fixed.text);
  }
  return error.text;
}

}  // namespace taskcell::gateway
