#!/usr/bin/env python3
"""Prints the demo's results for a person, and fails when one is not what the demo promises.

demo_report.py receipt FILE | attempts FILE | ways FILE | refusal FILE STATUS
"""

import json
import re
import sys


def fail(why):
    sys.exit("demo: " + why)


def show(value):
    return "-" if value is None else str(value)


def print_receipt(result):
    receipt = result["receipt"]
    print("reply: " + result["reply"])
    if not re.search(r"[0-9a-f]{32}", result["reply"]):
        fail("the reply does not hold the value that only a tool call in the cell could read")
    for key in ("engine", "runtime", "model", "uid_separation", "outcome", "setup_ms", "wall_ms"):
        print(f"  {key:<22} {receipt[key]}")
    seen = receipt["seen"]
    print(f"  {'verified':<22} {receipt['verified']}: {seen['denied_calls_tried']} denied calls tried, "
          f"seccomp mode {seen['seccomp_mode']}, Landlock ABI {seen['landlock_abi']}, "
          f"interfaces {', '.join(seen['interfaces'])}")
    print(f"  {'limit':<22} {'asked':>12} {'seen inside':>14} {'seen outside':>14}")
    for row in receipt["limits"]:
        print(f"  {row['limit']:<22} {row['asked']:>12} {show(row['seen_inside']):>14} {show(row['seen_outside']):>14}")
    for row in receipt["tmpfs"]:
        print(f"  {row['target']:<22} {row['asked']:>12} {show(row['seen_inside']):>14}")
    if not receipt["verified"] or receipt["mismatches"]:
        fail("the cell was not verified")


def print_attempts(result):
    attempts = []
    for line in result["reply"].splitlines():
        start = line.find("{")
        if start >= 0:
            attempts.append(json.loads(line[start:]))
    if len(attempts) < 8:
        fail("the hostile task reported only %d attempts: %s" % (len(attempts), result["reply"]))
    for attempt in attempts:
        print(f"  {attempt['payload']:<34} {attempt['name']:<12} {attempt['detail']}".rstrip())
    through = [attempt["payload"] for attempt in attempts if attempt["result"] == 0]
    if through:
        fail("these attempts got through: " + ", ".join(through))
    print("  cgroup events              " + json.dumps(result["receipt"]["cgroup_events"]))


def print_ways(result):
    ways = [line.split("\t") for line in result["reply"].splitlines() if line.count("\t") == 2]
    if len(ways) < 25:
        fail("the hostile task reported only %d ways out: %s" % (len(ways), result["reply"]))
    for name, what, came in ways:
        print(f"  {name:<18} {what:<52} {came}")
    # These two are to work: they show that the broker is there.
    through = [name for name, _, came in ways if came == "through" and name not in ("control", "placeholder")]
    if through:
        fail("these ways led out: " + ", ".join(through))


def print_refusal(result, status):
    print(f"exit status {status}, code {result['code']}: {result['message']}")
    if result["code"] != "resource_limits_unenforced" or status == 0:
        fail("the task was not refused with resource_limits_unenforced")


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        result = json.load(file)
    if sys.argv[1] == "receipt":
        print_receipt(result)
    elif sys.argv[1] == "attempts":
        print_attempts(result)
    elif sys.argv[1] == "ways":
        print_ways(result)
    else:
        print_refusal(result, int(sys.argv[3]))


if __name__ == "__main__":
    main()
