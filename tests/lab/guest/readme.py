"""A section of the README as somebody follows it: the lines of its blocks, one after the other in one shell."""

import dataclasses
import pathlib
import re
import subprocess

TIMEOUT_S = 1800
SECTION = "Install and run as a service"
# All that is not run as it is written, since the machine has no network and the package is made already; {claude} is a program
# that stands in for claude, {provider} the address of a provider on loopback.
SUBSTITUTIONS = (
    ("./dev build", ":"),
    ("cpack --config build/release/CPackConfig.cmake", ":"),
    ("sudo apt install ./", "sudo dpkg --install ./"),
    ("sudo apt install npm && sudo npm install --global --prefix /usr/local @anthropic-ai/claude-code",
     "sudo install -m 0755 {claude} /usr/local/bin/claude"),
    (r"'[Service]\nEnvironment=", r"'[Service]\nEnvironment=ANTHROPIC_BASE_URL={provider}\nEnvironment="),
)
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.M | re.S)
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?$")
# Ends with the first command that fails. What is typed is there for those that read alone; AFTER is asked after each.
_SESSION = r"""
cd "$CHECKOUT" || exit
for file in "$COMMANDS"/*.command; do
  command=$(<"$file")
  case $command in
    'read '*) eval "$command" ;;
    *) eval "$command" </dev/null ;;
  esac >"$file.out" 2>"$file.err"
  echo $? >"$file.status"
  (eval "$AFTER") </dev/null >"$file.after" 2>&1
  [ "$(<"$file.status")" = 0 ] || exit
done
"""


@dataclasses.dataclass
class Ran:
    command: str
    status: int
    out: str
    err: str
    after: str


def commands(text, section=SECTION):
    """Those of the section's blocks, each with its here-document."""
    [body] = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    found = []
    for block in _BLOCK.findall(body):
        lines = iter(block.splitlines())
        for line in lines:
            here = _HERE_DOCUMENT.search(line)
            while here and not line.endswith("\n" + here[1]):
                line += "\n" + next(lines)
            found.append(line)
    return found


def substituted(found, **values):
    """The commands as they are run, each substitution in the one that it is for."""
    found = list(found)
    for left, right in SUBSTITUTIONS:
        places = [at for at, command in enumerate(found) for _ in range(command.count(left))]
        if len(places) != 1:
            raise LookupError(f"in {len(places)} places of the README, not in one: {left}")
        found[places[0]] = found[places[0]].replace(left, right.format(**values))
    return found


def follow(place, checkout, scratch, found, typed="", after=":"):
    """Runs the commands in a place, from a checkout, with somebody who types; what became of each that was begun."""
    scratch = pathlib.Path(scratch)
    files = [scratch / f"{number:02}.command" for number in range(len(found))]
    for file, command in zip(files, found):
        file.write_text(command + "\n")
    session = scratch / "session"
    session.write_text(_SESSION)  # not among the words, where a service manager may see variables of its own
    subprocess.run([*place, "env", f"CHECKOUT={checkout}", f"COMMANDS={scratch}", f"AFTER={after}", "bash", str(session)],
                   input=typed, text=True, check=False, timeout=TIMEOUT_S)
    told = []
    for file, command in zip(files, found):
        ends = {name: pathlib.Path(f"{file}.{name}") for name in ("status", "out", "err", "after")}
        if not ends["status"].exists():
            break
        texts = {name: end.read_text(errors="replace") for name, end in ends.items()}
        told.append(Ran(command, int(texts.pop("status")), **texts))
    return told
