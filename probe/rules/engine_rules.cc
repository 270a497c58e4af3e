#include <sys/stat.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "probe/facts/trials.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

std::string Octal(uint32_t mode) {
  std::string text = "0000";
  for (std::size_t i = 0; i < text.size(); ++i)
    text[3 - i] = static_cast<char>('0' + ((mode >> (3 * i)) & 7U));
  return text;
}

int AccessOf(const HostFacts& facts, const std::string& path) {
  if (!facts.live) return 0;
  for (const SocketAccess& each : facts.live->sockets) {
    if (each.path == path) return each.err;
  }
  return 0;
}

void AddSockets(const HostFacts& facts, Report& report) {
  if (facts.engines.sockets.empty()) {
    report.findings.push_back({"engine.sockets", Verdict::kReady,
                               "no engine's socket is in its usual place; native cells need none"});
    return;
  }
  Finding finding{"engine.sockets", Verdict::kReady, ""};
  std::string open_to_all;
  for (const EngineFacts::Socket& each : facts.engines.sockets) {
    int err = AccessOf(facts, each.path);
    std::string state = Text(each.rootless ? "rootless" : "rootful", ", uid ", each.seen.uid,
                             " gid ", each.seen.gid, " mode ", Octal(each.seen.mode & 07777U),
                             each.listening ? "" : ", nothing listens",
                             err == 0 ? "" : ", not for this user: ", ErrorName(err));
    finding.reason += Text(finding.reason.empty() ? "" : "; ", each.path, " (", state, ")");
    finding.found.push_back({each.path, state});
    bool others = (each.seen.mode & S_IWOTH) != 0;
    if (!each.rootless && others) open_to_all = each.path;
  }
  if (!open_to_all.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text("everyone may use the rootful engine at ", open_to_all,
                          ", which is root for everyone; ", finding.reason);
    finding.who = Who::kAdmin;
    finding.fix = Text("as administrator: chmod o-rwx ", ShellWord(open_to_all));
  }
  report.findings.push_back(std::move(finding));
}

// The engine that would be used need not be the user's own: its store, ids and limits are
// another's.
void AddChoice(const HostFacts& facts, Report& report) {
  if (!facts.live) return;
  const LiveFacts& live = *facts.live;
  if (!live.engine_error.empty()) {
    report.findings.push_back({"engine.choice", Verdict::kNote,
                               Text("no engine can be chosen: ", live.engine_error), Who::kUser,
                               "mend that setting, or use native cells"});
    return;
  }
  if (live.engine_socket.empty()) return;
  Finding finding{"engine.choice", Verdict::kReady,
                  Text(Printable(live.engine_socket), " would be used, from ", live.engine_source)};
  int err = AccessOf(facts, live.engine_socket);
  if (err == ENOENT)
    finding.reason += "; nothing is there";
  else if (err != 0)
    finding.reason += Text("; this user may not use it (", ErrorName(err), ")");
  bool own = live.engine_socket.starts_with("/run/user/");
  bool has_own = false;
  for (const EngineFacts::Socket& each : facts.engines.sockets) has_own |= each.rootless;
  if (!own && has_own && facts.cgroups.around.uid != 0) {
    finding.verdict = Verdict::kNote;
    finding.reason +=
        "; it is the rootful engine, while one of your own listens: images and rules are in the "
        "other's store";
    finding.who = Who::kUser;
    finding.fix = Text("export DOCKER_HOST=unix:///run/user/", facts.cgroups.around.uid,
                       "/docker.sock (Podman: podman/podman.sock)");
  }
  report.findings.push_back(std::move(finding));
}

void AddListeners(const HostFacts& facts, Report& report) {
  if (facts.engines.tcp_listeners.empty()) return;
  std::string list;
  for (const std::string& each : facts.engines.tcp_listeners)
    list += Text(list.empty() ? "" : ", ", each);
  report.findings.push_back(
      {"engine.tcp",
       Verdict::kNote,
       Text("an engine listens on TCP: ", list,
            "; without TLS client certificates that is root for whoever reaches it"),
       Who::kAdmin,
       "as administrator: take -H tcp:// out of the engine's unit or "
       "/etc/docker/daemon.json, and restart it",
       {{"/proc/net/tcp", list}}});
}

void AddGroup(const HostFacts& facts, Report& report) {
  if (facts.engines.docker_group.empty()) return;
  report.findings.push_back({"engine.docker-group",
                             Verdict::kNote,
                             Text("members of the group docker are as good as root: ",
                                  Printable(facts.engines.docker_group)),
                             Who::kAdmin,
                             "as administrator, for who need not be: gpasswd -d USER docker",
                             {{"/etc/group", facts.engines.docker_group}}});
}

}  // namespace

void JudgeEngines(const HostFacts& facts, Report& report) {
  AddSockets(facts, report);
  AddChoice(facts, report);
  AddListeners(facts, report);
  AddGroup(facts, report);
}

}  // namespace taskcell::probe
