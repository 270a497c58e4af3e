# bash completion of taskcell(1)
_taskcell() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local words
  case $before in
    --input) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --home) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    --path) words="bus dashboard heartbeat autopilot_delegate autopilot_run_skill goal_round plan_step channel_reply cron reminder mail proactive ephemeral acp eval" ;;
    --role) words="planner executor verifier synthesiser" ;;
    --gate) words="auto always_solo always_team" ;;
    --language) words="python bash javascript" ;;
    --stdin) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    config) words="check" ;;
    audit) words="verify" ;;
    image) words="check pull" ;;
    *)
      if [ "$COMP_CWORD" -eq 1 ]; then
        words="run submit cancel logs ps show shell accounts audit doctor config image team-gate sweep script mcp --help --version"
      else
        case $command in
          run) words="--path --role --require-cell --input --home --json --help" ;;
          submit) words="--path --role --require-cell --wait --home --json --help" ;;
          ps) words="--all --home --json --help" ;;
          team-gate) words="--gate --home --json --help" ;;
          sweep) words="--dry-run --home --json --help" ;;
          script) words="--language --stdin --timeout-seconds --poc --agent --home --json --help" ;;
          doctor) words="--hostile --attack --home --json --help" ;;
          shell) words="--home --help" ;;
          mcp) words="--agent --home --help" ;;
          *) words="--home --json --help" ;;
        esac
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _taskcell taskcell
