#pragma once

#include <array>
#include <string_view>

namespace taskcell::gateway {

// The file and shell tools each program may call in a cell, by its own names.
inline constexpr std::array<std::string_view, 6> kClaudeTools = {"Read", "Write", "Edit",
                                                                 "Glob", "Grep",  "Bash"};
// Those of codex, with what only speaks to the program itself; seen with 0.171.0, and older names
// of its shell. In code mode the model calls exec alone, whose script calls the others.
inline constexpr std::string_view kCodexCodeMode = "exec";
inline constexpr std::array<std::string_view, 17> kCodexTools = {"shell",
                                                                 "shell_command",
                                                                 "local_shell",
                                                                 "exec_command",
                                                                 "write_stdin",
                                                                 "apply_patch",
                                                                 "view_image",
                                                                 kCodexCodeMode,
                                                                 "wait",
                                                                 "sleep",
                                                                 "update_plan",
                                                                 "get_goal",
                                                                 "create_goal",
                                                                 "update_goal",
                                                                 "request_user_input",
                                                                 "request_user_input_async",
                                                                 "send_message_to_user_async"};
inline constexpr std::array<std::string_view, 6> kGrokTools = {
    "run_terminal_command", "read_file", "search_replace", "list_dir", "grep", "write"};
inline constexpr std::array<std::string_view, 14> kAntigravityTools = {
    "run_command",  "command_status", "send_command_input",
    "view_file",    "write_to_file",  "replace_file_content",
    "sed_file",     "list_dir",       "multi_replace_file_content",
    "find_by_name", "grep_search",    "finish",
    "wait",         "wait_5_seconds"};
// What grok keeps even when it is told its tools (seen), and must be told that it may not have.
inline constexpr std::array<std::string_view, 19> kGrokDenied = {"todo_write",
                                                                 "monitor",
                                                                 "search_tool",
                                                                 "use_tool",
                                                                 "workflow",
                                                                 "enter_plan_mode",
                                                                 "exit_plan_mode",
                                                                 "ask_user_question",
                                                                 "send_feedback",
                                                                 "image_gen",
                                                                 "image_edit",
                                                                 "image_to_video",
                                                                 "reference_to_video",
                                                                 "spawn_subagent",
                                                                 "scheduler_create",
                                                                 "scheduler_delete",
                                                                 "scheduler_list",
                                                                 "kill_command_or_subagent",
                                                                 "get_command_or_subagent_output"};

// taskcell-loop started with this answers antigravity's hook.
inline constexpr std::string_view kToolGuard = "--tool-guard";

}  // namespace taskcell::gateway
