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
    'shell:open a shell in an agent'\''s cell'
    'accounts:list the accounts'
    'audit:look at the receipts'
    'doctor:say whether tasks would run now'
    'config:look at the configuration'
    'image:look at the image of cells, or pull it'
    'team-gate:say whether goal rounds may be a team'\''s'
    'sweep:remove what killed runs left behind'
    'script:run one script in a cell without a network'
    'mcp:serve execute_program to an MCP client'
  )
  common=('--home[the home directory]:directory:_files -/' '--json[print one JSON object]' '--help[explain the command]')
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help' '--version'
    return
  fi
  case $words[2] in
    run) _arguments '--path[what starts the task]:kind:(bus dashboard heartbeat autopilot_delegate autopilot_run_skill goal_round plan_step channel_reply cron reminder mail proactive ephemeral acp eval)' '--role[a team role]:role:(planner executor verifier synthesiser)' '--require-cell[refuse to run on the host]' '--input[what the cell sees in /input]:file:_files' $common ;;
    submit) _arguments '--path[what starts the task]:kind:(bus dashboard heartbeat autopilot_delegate autopilot_run_skill goal_round plan_step channel_reply cron reminder mail proactive ephemeral acp eval)' '--role[a team role]:role:(planner executor verifier synthesiser)' '--require-cell[refuse to run on the host]' '--wait[wait for its end]' $common ;;
    ps) _arguments '--all[every task]' $common ;;
    team-gate) _arguments '--gate[the gate of the goal loop]:gate:(auto always_solo always_team)' $common ;;
    sweep) _arguments '--dry-run[change nothing]' $common ;;
    script) _arguments '--language[of the script]:language:(python bash javascript)' '--stdin[what it reads]:file:_files' '--timeout-seconds[its time limit]:seconds:' '--poc[print it as evidence]' '--agent[on whose behalf]:agent:' '*:script:_files' $common ;;
    doctor) _arguments '--hostile[attack the cells]' \*'--attack[this attempt or topic only]:name:' $common ;;
    shell) _arguments '2:agent:' '--home[the home directory]:directory:_files -/' '--help[explain the command]' ;;
    mcp) _arguments '--agent[on whose behalf]:agent:' '--home[the home directory]:directory:_files -/' '--help[explain the command]' ;;
    audit) _arguments '2:command:(verify)' $common ;;
    image) _arguments '2:command:(check pull)' '3:image:' $common ;;
    config) _arguments '2:command:(check)' $common ;;
    *) _arguments $common ;;
  esac
}
_taskcell "$@"
