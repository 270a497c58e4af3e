// taskcell-probe: what a host enforces, what is in the way, and what delegates limits to a user.
#include <CLI/CLI.hpp>
#include <exception>
#include <sstream>

#include "launcher/base/text.h"
#include "launcher/sys/output.h"
#include "probe/cli/attack_command.h"
#include "probe/cli/cgroup_command.h"
#include "probe/cli/collect_command.h"
#include "probe/cli/delegate_command.h"
#include "probe/cli/host_command.h"
#include "probe/cli/live_command.h"
#include "probe/cli/mounts_command.h"
#include "probe/cli/output.h"

namespace {

using taskcell::probe::AttackOptions;
using taskcell::probe::CgroupOptions;
using taskcell::probe::CollectOptions;
using taskcell::probe::DelegateOptions;
using taskcell::probe::EngineOptions;
using taskcell::probe::HostOptions;
using taskcell::probe::LiveOptions;
using taskcell::probe::MountsOptions;

CLI::Option* AddRootOption(CLI::App& app, std::string& root) {
  return app.add_option("--root", root,
                        "Look at the files below this directory instead of at this host");
}

void AddSourceOptions(CLI::App& app, std::string& root, std::string& from) {
  app.add_option("--from", from, "Judge what `taskcell-probe collect` wrote to this file")
      ->excludes(AddRootOption(app, root));
}

void AddHostOptions(CLI::App& app, HostOptions& options) {
  AddSourceOptions(app, options.root, options.from);
  app.add_option("--uid", options.uid, "Judge for this uid instead of the caller's");
  app.add_option("--user", options.user, "Judge for this user");
  app.add_option("--subuid", options.subuid, "Read this file instead of /etc/subuid");
  app.add_option("--subgid", options.subgid, "Read this file instead of /etc/subgid");
  app.add_option("--explain", options.explain, "Explain the row of this id and look at nothing");
  app.add_flag("--json", options.json, "Print the report as one JSON object");
  app.add_flag("--quiet", options.quiet, "Print the verdict line only");
}

void AddPlaceOptions(CLI::App& app, CgroupOptions& options) {
  app.add_option("--uid", options.uid, "Judge for this uid instead of the caller's");
  CLI::Option* user = app.add_option("--user", options.user, "The user's own service manager");
  CLI::Option* pid = app.add_option("--pid", options.pid, "The cgroup of this process");
  CLI::Option* path =
      app.add_option("--path", options.path, "This cgroup, as /proc/self/cgroup names it");
  user->excludes(pid)->excludes(path);
  pid->excludes(path);
}

void AddCgroupOptions(CLI::App& app, CgroupOptions& options) {
  AddSourceOptions(app, options.root, options.from);
  AddPlaceOptions(app, options);
  app.add_flag("--json", options.json, "Print one JSON object");
}

void AddCollectOptions(CLI::App& app, CollectOptions& options) {
  app.add_option("-o,--output", options.output, "The archive to write; it must not exist")
      ->required();
  AddRootOption(app, options.about.root);
  AddPlaceOptions(app, options.about);
}

void AddLiveOptions(CLI::App& app, LiveOptions& options) {
  app.add_option("--memory", options.memory, "The memory limit to break, 32M to 512M (64M)");
  app.add_option("--pids", options.pids, "The limit of tasks to break, 8 to 256 (64)");
  app.add_option("--cpus", options.cpus, "The limit of cores to break, 0.05 to 16 (0.2)");
  app.add_flag("--json", options.json, "Print the report as one JSON object");
  app.add_flag("--quiet", options.quiet, "Print the verdict line only");
}

void AddAttackOptions(CLI::App& app, AttackOptions& options) {
  app.add_option("ATTACK", options.attacks, "Attacks or topics to try, as --list names them (all)");
  app.add_option("--engine", options.engine,
                 "native (the default), auto, docker, podman, or unix:///path");
  app.add_flag("--list", options.list, "List the attacks and try none");
  CLI::Option* json = app.add_flag("--json", options.json, "Print the report as one JSON object");
  CLI::Option* sarif = app.add_flag("--sarif", options.sarif, "Print it as a SARIF 2.1.0 log");
  CLI::Option* quiet = app.add_flag("--quiet", options.quiet, "Print the verdict line only");
  json->excludes(sarif)->excludes(quiet);
  sarif->excludes(quiet);
}

void AddDelegateOptions(CLI::App& app, DelegateOptions& options) {
  app.add_option("--user", options.user, "The user, by name or uid, instead of the caller");
  CLI::Option* apply = app.add_flag("--apply", options.apply, "Do it (root only)");
  app.add_flag("--revert", options.revert, "Undo what --apply did (root only)")->excludes(apply);
  app.add_flag("--json", options.json, "Print one JSON object");
}

void AddMountsOptions(CLI::App& app, MountsOptions& options) {
  app.add_option("DIR", options.directories, "The directories (with --policy bind also files)")
      ->required();
  app.add_option("--policy", options.policy, "agent, strict (the default) or bind");
  app.add_option("--unsafe-subtree", options.unsafe_subtree,
                 "With --policy agent: prune (the default) or skip, as in config.toml");
  app.add_option("--owner", options.owner,
                 "The user who is to own everything (the caller; for root: who owns DIR)");
  app.add_flag("--cross-mounts", options.cross_mounts, "Walk what is mounted below as well");
  app.add_flag("--xattrs", options.xattrs, "Ask every file for all its extended attributes");
  app.add_option("--max-entries", options.max_entries, "Look at no more entries of a directory");
  app.add_option("--timeout", options.timeout, "Take no longer: 250ms, 10s, 2m, 1h");
  app.add_option("--threads", options.threads, "Walk with so many threads");
  app.add_flag("--json", options.json, "Print JSON");
  app.add_flag("--sarif", options.sarif, "Print a SARIF 2.1.0 log");
  app.add_flag("-0", options.null_list, "Print the safe paths, each ended by a NUL byte");
}

// What the parser says instead of a command: help, the version, or what is wrong.
int Answer(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream ignored;
  if (app.exit(error, out, ignored) == 0)
    return taskcell::probe::Print(out.str()) ? 0 : taskcell::probe::kExitUnknown;
  return taskcell::probe::Complain(taskcell::Error(
      taskcell::Kind::kUsage, taskcell::Text(error.what(), "; see taskcell-probe --help")));
}

int Main(int argc, char** argv) {
  CLI::App app{
      "Tells whether this host really enforces limits for a rootless container, and if not, "
      "who must change what.",
      "taskcell-probe"};
  app.set_version_flag("--version", "taskcell-probe " TASKCELL_VERSION);
  app.require_subcommand(0, 1);

  HostOptions options;
  AddHostOptions(app, options);
  CLI::App* host = app.add_subcommand("host", "Judge the whole host (the default)");
  AddHostOptions(*host, options);

  CgroupOptions cgroup_options;
  CLI::App* cgroup =
      app.add_subcommand("cgroup", "Draw the delegation chain and mark where it breaks");
  AddCgroupOptions(*cgroup, cgroup_options);

  CollectOptions collect_options;
  CLI::App* collect = app.add_subcommand(
      "collect", "Write all that the verdict rests on to one file, to be judged elsewhere");
  AddCollectOptions(*collect, collect_options);

  DelegateOptions delegate_options;
  CLI::App* delegate =
      app.add_subcommand("delegate", "Print or do what makes limits hold for a user here");
  AddDelegateOptions(*delegate, delegate_options);

  MountsOptions mounts_options;
  CLI::App* mounts = app.add_subcommand("mounts", "Audit directories before they are mounted");
  AddMountsOptions(*mounts, mounts_options);

  LiveOptions live_options;
  CLI::App* live = app.add_subcommand("live", "Break the limits of cells made on this host");
  AddLiveOptions(*live, live_options);

  EngineOptions engine_options;
  CLI::App* engine = app.add_subcommand("engine", "Break the limits of an engine's containers");
  engine->add_option("ENGINE", engine_options.engine,
                     "auto (the default), docker, podman, native, or unix:///path");
  engine->add_flag("--keep-image", engine_options.keep_image,
                   "Leave the image that was made for it");
  AddLiveOptions(*engine, engine_options.live);

  AttackOptions attack_options;
  CLI::App* attack = app.add_subcommand("attack", "Attack cells and see whether they hold");
  AddAttackOptions(*attack, attack_options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Answer(app, error);
  }
  if (cgroup->parsed()) return taskcell::probe::CgroupCommand(cgroup_options);
  if (collect->parsed()) return taskcell::probe::CollectCommand(collect_options);
  if (delegate->parsed()) return taskcell::probe::DelegateCommand(delegate_options);
  if (mounts->parsed()) return taskcell::probe::MountsCommand(mounts_options);
  if (live->parsed()) return taskcell::probe::LiveCommand(live_options);
  if (engine->parsed()) return taskcell::probe::EngineCommand(engine_options);
  if (attack->parsed()) return taskcell::probe::AttackCommand(attack_options);
  return taskcell::probe::HostCommand(options);
}

}  // namespace

int main(int argc, char** argv) {
  taskcell::Status streams = taskcell::sys::PrepareStreams();
  if (!streams.ok()) return taskcell::probe::Complain(streams.error());
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    return taskcell::probe::Complain(taskcell::Error(taskcell::Kind::kSystem, error.what()));
  }
}
