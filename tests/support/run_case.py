#!/usr/bin/env python3
"""run_case.py CASES.md ID BIN_DIR: one given case: makes its input in an empty directory and sees that the ground it stands
on holds here, then makes it again in another and runs its check with the programs of BIN_DIR. Exit status 0 passed, 1 failed,
77 cannot run here (the reason is printed).
With TASKCELL_TEST_OPENAT2 set to ENOSYS or EPERM the check runs where openat2(2) answers that; with TASKCELL_CASE_LAUNCH_AS=user
the launcher is always started by the case's user, else by whoever the check says, which mostly is root."""
import ctypes
import errno
import os
import pwd
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIP = 77
TIME_LIMIT_S = 100


def skip(reason):
    print('Skipped:', reason)
    sys.exit(1 if os.environ.get('TASKCELL_TEST_MUST_RUN') else SKIP)


def find_case(path, wanted):
    import yaml
    text = open(path, encoding='utf-8').read()
    for block in re.findall(r'^```yaml\n(.*?)^```$', text, re.S | re.M):
        for case in yaml.safe_load(block) or []:
            if case.get('id') == wanted:
                return case
    sys.exit(f'no case {wanted} in {path}')


def refuse_openat2(answer):
    """A filter for this process and all it starts that answers openat2 with that error (seccomp(2))."""
    openat2, load, equal, give, allow, refuse = 437, 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
    lines = [(load, 0, 0, 0), (equal, 0, 1, openat2), (give, 0, 0, refuse | getattr(errno, answer)), (give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(lines), ctypes.addressof(code)))
    set_seccomp, filter_mode, set_no_new_privs = 22, 2, 38
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        libc.prctl(set_no_new_privs, 1, 0, 0, 0)
    if libc.prctl(set_seccomp, filter_mode, program, 0, 0) != 0:
        os._exit(125)
    if libc.syscall(openat2, -1, None, None, 0) != -1 or ctypes.get_errno() != getattr(errno, answer):
        os._exit(125)


def run(part, script, directory, environment):
    answer = os.environ.get('TASKCELL_TEST_OPENAT2') if part == 'check' else None
    done = subprocess.run(['bash', '-c', 'set -e; . "$TOOLS/lib.sh"; ' + script], cwd=directory, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', timeout=TIME_LIMIT_S,
                          preexec_fn=(lambda: refuse_openat2(answer)) if answer else None)
    if done.returncode != 0:
        print(f'{part} failed with status {done.returncode}:\n{done.stdout[-4000:]}')
    return done.returncode == 0


def main():
    cases, wanted, bin_dir = sys.argv[1:4]
    for tool in ('jq', 'curl', 'xxd'):
        if shutil.which(tool) is None:
            skip(f'{tool} is not installed')
    try:
        import yaml  # noqa: F401
    except ImportError:
        skip('python3-yaml is not installed')
    user = os.environ.get('CASE_USER', 'taskcell-test')
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(user)
        except KeyError:
            skip(f'there is no user {user} (tests/support/fixture.sh up makes it)')
    bin_dir = os.environ.get('TASKCELL_TEST_BIN', bin_dir)
    environment = dict(os.environ, CASE_USER=user, TOOLS=os.path.join(os.path.dirname(os.path.abspath(cases)), 'tools'),
                       GW=os.path.join(bin_dir, 'taskcell-casedriver'), LAUNCH=os.path.join(bin_dir, 'taskcell-launch'),
                       TASKCELL_PROBE=os.path.join(bin_dir, 'taskcell-probe'),
                       AUDIT=os.path.join(bin_dir, 'taskcell-probe') + ' mounts --policy agent')
    if os.environ.get('TASKCELL_CASE_LAUNCH_AS') == 'user':
        who = pwd.getpwnam(user)
        # By exec, not by lib.sh's asuser: checks send signals to what they started.
        environment['LAUNCH'] = f"setpriv --reuid={who.pw_uid} --regid={who.pw_gid} --clear-groups {environment['LAUNCH']}"
    # Another program may stand in for it.
    environment['PROBE'] = os.environ.get('TASKCELL_CASE_PROBE', environment['TASKCELL_PROBE'])
    for name in ('DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'CONTAINER_HOST', 'ANTHROPIC_BASE_URL',
                 'OPENAI_BASE_URL'):
        environment.pop(name, None)
    case = find_case(cases, wanted)
    for part in ('ground', 'check'):
        # Each in a directory of its own: what one leaves is nothing to the other.
        with tempfile.TemporaryDirectory(prefix='taskcell-case-') as directory:
            os.chmod(directory, 0o755)
            if not run('input', case['input'], directory, environment) or not run(part, case[part], directory, environment):
                sys.exit(1)


main()
