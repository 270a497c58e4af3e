#!/usr/bin/env python3
"""run_case.py CASES.md ID BIN_DIR: one given case: makes its input in an empty directory, then runs its check with the
programs of BIN_DIR. Exit status 0 passed, 1 failed, 77 cannot run here (the reason is printed)."""
import os
import pwd
import re
import shutil
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


def run(part, script, directory, environment):
    done = subprocess.run(['bash', '-c', 'set -e; . "$TOOLS/lib.sh"; ' + script], cwd=directory, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', timeout=TIME_LIMIT_S)
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
    # Another program may stand in for it.
    environment['PROBE'] = os.environ.get('TASKCELL_CASE_PROBE', environment['TASKCELL_PROBE'])
    for name in ('DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'CONTAINER_HOST', 'ANTHROPIC_BASE_URL',
                 'OPENAI_BASE_URL'):
        environment.pop(name, None)
    case = find_case(cases, wanted)
    with tempfile.TemporaryDirectory(prefix='taskcell-case-') as directory:
        os.chmod(directory, 0o755)
        if not run('input', case['input'], directory, environment) or not run('check', case['check'], directory,
                                                                              environment):
            sys.exit(1)


main()
