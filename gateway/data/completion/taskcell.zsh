#compdef taskcell
# zsh completion of taskcell(1)
_taskcell() {
  local -a commands common
  commands=(
    'run:run one task of an agent and print its reply'
    'submit:hand a task to the gateway'
    'cancel:end a task of the gateway'
    'logs:print a line for each step of a task'
    'ps:list the newest tasks'
    'show:show one task'
    'accounts:list the accounts'
    'doctor:say whether tasks would run now'
    'config:look at the configuration'
    'team-gate:say whether goal rounds may be a team'\''s'
    'sweep:remove what killed runs left behind'
  )
  common=('--home[the home directory]:directory:_files -/' '--json[print one JSON object]' '--help[explain the command]')
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help' '--version'
    return
  fi
  case $words[2] in
    run) _arguments '--path[what starts the task]:kind:(bus dashboard heartbeat autopilot_delegate autopilot_run_skill goal_round plan_step channel_reply cron reminder mail proactive ephemeral acp eval)' '--role[a team role]:role:(planner executor verifier synthesiser)' '--require-cell[refuse to run on the host]' $common ;;
    submit) _arguments '--path[what starts the task]:kind:(bus dashboard heartbeat autopilot_delegate autopilot_run_skill goal_round plan_step channel_reply cron reminder mail proactive ephemeral acp eval)' '--role[a team role]:role:(planner executor verifier synthesiser)' '--require-cell[refuse to run on the host]' '--wait[wait for its end]' $common ;;
    ps) _arguments '--all[every task]' $common ;;
    team-gate) _arguments '--gate[the gate of the goal loop]:gate:(auto always_solo always_team)' $common ;;
    sweep) _arguments '--dry-run[change nothing]' $common ;;
    config) _arguments '2:command:(check)' $common ;;
    *) _arguments $common ;;
  esac
}
_taskcell "$@"
