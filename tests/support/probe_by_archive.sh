#!/bin/bash
# Stands in for taskcell-probe ($TASKCELL_PROBE) in a given case: what is asked of a directory of files is answered from
# an archive of it, and must be what the directory itself gives, byte by byte.
set -u
root=
about=()
rest=()
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=$2; shift ;;
    --uid | --user) about+=("$1" "$2"); rest+=("$1" "$2"); shift ;;
    *) rest+=("$1") ;;
  esac
  shift
done
[ -n "$root" ] || exec "$TASKCELL_PROBE" "${rest[@]}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$TASKCELL_PROBE" collect --root "$root" "${about[@]}" -o "$work/host.tar" >"$work/contents" || exit 98
"$TASKCELL_PROBE" --root "$root" "${rest[@]}" >"$work/direct"
direct=$?
"$TASKCELL_PROBE" --from "$work/host.tar" "${rest[@]}" >"$work/archived" 2>"$work/notes"
archived=$?
diff "$work/direct" "$work/archived" >&2 || exit 97
[ ! -s "$work/notes" ] || { cat "$work/notes" >&2; exit 96; }
[ $direct = $archived ] || exit 95
diff <("$TASKCELL_PROBE" cgroup --root "$root" "${about[@]}") <("$TASKCELL_PROBE" cgroup --from "$work/host.tar" "${about[@]}") >&2 || exit 94
cat "$work/archived"
exit $archived
