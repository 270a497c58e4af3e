#include "gateway/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "gateway/config/sandbox_settings.h"
#include "gateway/config/task_kind.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr char kDashHint[] =
    "a prompt that begins with '-' goes to the end, behind '--', or to standard input";

constexpr char kHomeText[] =
    "The home directory (else $TASKCELL_HOME, $DUDUCLAW_HOME, ~/.taskcell, ~/.duduclaw)";

// CLI11's check: an empty text is for one that passed.
std::string CheckNotEmpty(const std::string& path) {
  return Trim(path).empty() ? "the path is empty (an unset variable?)" : "";
}

// The same for an image's name.
std::string CheckImageName(const std::string& image) {
  const std::string fault = ImageNameFault(image);
  return fault.empty() ? "" : Text("the image's name ", fault);
}

CommandLine Refuse(std::string text) {
  CommandLine line;
  line.text = std::move(text);
  return line;
}

// The parser and where it puts what it reads.
class Parser {
 public:
  Parser();
  CommandLine Parse(int argc, const char* const* argv);

 private:
  void AddGateway();
  void AddScript();
  void AddOperator();
  void AddTerms(CLI::App* command);
  void AddCommon(CLI::App* command);
  CommandLine::What Asked() const;

  CommandLine line_;
  CLI::App app_{"Runs an AI agent's task in a verified, locked-down cell.", "taskcell"};
  CLI::App* run_;
  CLI::App* config_;
  CLI::App* check_;
  CLI::App* ps_;
  CLI::App* show_;
  CLI::App* sweep_;
  CLI::App* doctor_;
  CLI::App* team_gate_;
  CLI::App* submit_;
  CLI::App* cancel_;
  CLI::App* logs_;
  CLI::App* accounts_;
  CLI::App* script_;
  CLI::App* mcp_;
  CLI::App* audit_;
  CLI::App* verify_;
  CLI::App* shell_;
  CLI::App* image_;
  CLI::App* image_check_;
  CLI::App* pull_;
};

Parser::Parser() {
  app_.set_version_flag("--version", "taskcell " TASKCELL_VERSION);
  app_.require_subcommand(1);
  run_ = app_.add_subcommand("run", "Run one task of an agent and print its reply");
  // Without -h: a prompt "-hello" would be the option with something behind it.
  run_->set_help_flag("--help", "Print this help message and exit");
  RunOptions& options = line_.options;
  options.prompt = "-";
  run_->add_option("AGENT", options.agent, "The agent's [agent] name, or default")->required();
  run_->add_option("PROMPT", options.prompt, "The task; - or nothing: standard input");
  AddCommon(run_);
  run_->add_option("--path", options.path, "What asks for the task: bus, cron, mail, ...");
  AddTerms(run_);
  run_->add_option("--input", options.inputs,
                   "A file or directory that the cell sees in /input; may be given more than once")
      ->allow_extra_args(false)
      ->check(CheckNotEmpty);
  run_->get_option("--json")->description("Print reply, code and receipt as one JSON object");
  config_ = app_.add_subcommand("config", "Look at a home's configuration");
  config_->require_subcommand(1);
  check_ = config_->add_subcommand("check", "Say what is wrong with it: file, line, key");
  AddCommon(check_);
  ps_ = app_.add_subcommand("ps", "List the newest tasks of a home");
  ps_->add_flag("--all", line_.all, "Every task that is on record");
  show_ = app_.add_subcommand("show", "Show one task, its cells and what became of it");
  show_->add_option("ID", line_.task, "The task's id, or the beginning of it")->required();
  sweep_ = app_.add_subcommand("sweep", "Remove what killed runs left behind");
  sweep_->add_flag("--dry-run", line_.dry_run, "Say what would be removed, and change nothing");
  doctor_ = app_.add_subcommand("doctor", "Say whether the agents' tasks would run now");
  CLI::Option* hostile = doctor_->add_flag(
      "--hostile", line_.hostile, "Try to escape from cells made as a task's, and say what held");
  doctor_
      ->add_option("--attack", line_.attacks,
                   "With --hostile: only this attempt or topic of taskcell-probe attack")
      ->allow_extra_args(false)
      ->needs(hostile);
  team_gate_ =
      app_.add_subcommand("team-gate", "Say whether an agent's goal rounds may be a team's");
  team_gate_->add_option("AGENT", options.agent, "The agent's [agent] name, or default")
      ->required();
  team_gate_->add_option("--gate", line_.team_gate, "auto, always_solo or always_team");
  audit_ = app_.add_subcommand("audit", "Look at the receipts of a home");
  audit_->require_subcommand(1);
  verify_ = audit_->add_subcommand("verify", "Say whether they are what was written");
  AddGateway();
  AddScript();
  AddOperator();
  for (CLI::App* command : {verify_, ps_, show_, sweep_, doctor_, team_gate_, submit_, cancel_,
                            logs_, accounts_, image_check_, pull_})
    AddCommon(command);
}

void Parser::AddTerms(CLI::App* command) {
  RunOptions& options = line_.options;
  command->add_option("--role", options.role, "The member of a team that a goal round asks for");
  command->add_flag("--require-cell", options.require_cell,
                    "Refuse the task where it would run on the host");
}

void Parser::AddGateway() {
  RunOptions& options = line_.options;
  submit_ = app_.add_subcommand("submit", "Hand a task to the home's gateway and print its id");
  submit_->set_help_flag("--help", "Print this help message and exit");
  submit_->add_option("AGENT", options.agent, "The agent's [agent] name, or default")->required();
  submit_->add_option("PROMPT", options.prompt, "The task; - or nothing: standard input");
  submit_->add_option("--path", options.path, Text("What starts it: ", TaskKindNames()))
      ->required();
  AddTerms(submit_);
  submit_->add_flag("--wait", options.wait, "Wait for its end and print the reply, as run does");
  cancel_ = app_.add_subcommand("cancel", "End a task that waits or runs in the home's gateway");
  cancel_->add_option("ID", line_.task, "The task's id, or the beginning of it")->required();
  logs_ = app_.add_subcommand("logs", "Print a line for each step of a gateway's task");
  logs_->add_option("ID", line_.task, "The task's id, or the beginning of it")->required();
  accounts_ = app_.add_subcommand("accounts", "List the accounts and whether they may be used now");
}

void Parser::AddScript() {
  constexpr char kAgent[] = "On whose behalf, for the audit log (else $DUDUCLAW_AGENT_ID, default)";
  ScriptOptions& options = line_.script;
  options.file = "-";
  script_ = app_.add_subcommand("script", "Run one script in a cell without a network");
  script_->add_option("--language", options.language, "python, bash or javascript")->required();
  script_->add_option("FILE", options.file, "The script; - or nothing: standard input");
  script_->add_option("--stdin", options.input,
                      "What the script reads on standard input: a file, or - ; else nothing");
  CLI::Option* timeout =
      script_->add_option("--timeout-seconds", options.timeout_seconds, "Its time limit")
          ->check(CLI::Range(uint64_t{1}, kMaxScriptSeconds))
          ->capture_default_str();
  script_
      ->add_flag("--poc", options.poc,
                 "Print it as a security audit's evidence: 120 s, in a cell or not at all")
      ->excludes(timeout);
  script_->add_option("--agent", options.agent, kAgent);
  script_->add_option("--home", options.home, kHomeText)->check(CheckNotEmpty);
  script_->add_flag("--json", options.json, "Print one JSON object");
  mcp_ = app_.add_subcommand("mcp", "Serve the tool execute_program to an MCP client (stdio)");
  mcp_->add_option("--agent", line_.options.agent, kAgent);
  mcp_->add_option("--home", line_.options.home, kHomeText)->check(CheckNotEmpty);
}

void Parser::AddOperator() {
  image_ = app_.add_subcommand("image", "Look at the image that cells are made of, or pull it");
  image_->require_subcommand(1);
  image_check_ = image_->add_subcommand("check", "Say whether the engine has it and tasks can run");
  shell_ = app_.add_subcommand("shell", "Open a shell at this terminal in an agent's cell");
  shell_->add_option("AGENT", line_.options.agent, "The agent's [agent] name, or default")
      ->required();
  shell_->add_option("--home", line_.options.home, kHomeText)->check(CheckNotEmpty);
  pull_ = image_->add_subcommand("pull", "Bring it into the engine's store");
  for (CLI::App* command : {image_check_, pull_})
    command->add_option("IMAGE", line_.image, "Its name; nothing: the one of config.toml")
        ->check(CheckImageName);
}

CommandLine::What Parser::Asked() const {
  if (image_check_->parsed()) return CommandLine::What::kImageCheck;
  if (shell_->parsed()) return CommandLine::What::kShell;
  if (pull_->parsed()) return CommandLine::What::kImagePull;
  if (check_->parsed()) return CommandLine::What::kConfigCheck;
  if (doctor_->parsed()) return CommandLine::What::kDoctor;
  if (ps_->parsed()) return CommandLine::What::kPs;
  if (show_->parsed()) return CommandLine::What::kShow;
  if (sweep_->parsed()) return CommandLine::What::kSweep;
  if (team_gate_->parsed()) return CommandLine::What::kTeamGate;
  if (submit_->parsed()) return CommandLine::What::kSubmit;
  if (cancel_->parsed()) return CommandLine::What::kCancel;
  if (logs_->parsed()) return CommandLine::What::kLogs;
  if (accounts_->parsed()) return CommandLine::What::kAccounts;
  if (script_->parsed()) return CommandLine::What::kScript;
  if (mcp_->parsed()) return CommandLine::What::kMcp;
  if (verify_->parsed()) return CommandLine::What::kAuditVerify;
  return CommandLine::What::kRun;
}

void Parser::AddCommon(CLI::App* command) {
  command->add_option("--home", line_.options.home, kHomeText)->check(CheckNotEmpty);
  command->add_flag("--json", line_.options.json, "Print one JSON object");
}

CommandLine Parser::Parse(int argc, const char* const* argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool named = !first.empty() && !first.starts_with('-');
  auto is_it = [&](CLI::App* command) { return command->check_name(std::string(first)); };
  if (named && app_.get_subcommands(is_it).empty())
    return Refuse(Text("there is no command '", Printable(first), "'; see taskcell --help"));
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const bool is_wrong = app_.exit(error, out, err) != 0;
    const bool has_agent =
        run_->get_option("AGENT")->count() > 0 || submit_->get_option("AGENT")->count() > 0;
    if (is_wrong && has_agent) return Refuse(Text(error.what(), "; ", kDashHint));
    if (is_wrong) return Refuse(Text(error.what(), "; see taskcell --help"));
    if (has_agent) return Refuse(Text("help was asked for beside an agent; ", kDashHint));
    line_.what = CommandLine::What::kPrint;
    line_.text = out.str();
    return line_;
  }
  line_.what = Asked();
  return line_;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  return Parser().Parse(argc, argv);
}

}  // namespace taskcell::gateway
