#!/usr/bin/python3 -ISB
"""Stands in for antigravity: the command line, the line of standard input and the events that taskcell
knows of it, and one real request to the provider through HTTPS_PROXY with the key of the environment.
The certificate of the test's provider is read from the agent's directory."""

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

HOST = "generativelanguage.googleapis.com"


def say(event, **what):
    print(json.dumps({"event": event, event: what}), flush=True)


def step(index, kind, state, **what):
    say("step_update", step_index=index, step_type=kind, state=state, **what)


def ask(model, prompt):
    request = urllib.request.Request(
        f"https://{HOST}/v1beta/models/{model}:generateContent",
        data=json.dumps({"contents": [{"parts": [{"text": prompt}]}]}).encode(),
        headers={"x-goog-api-key": os.environ["GEMINI_API_KEY"]})
    context = ssl.create_default_context(cafile="/agent/SKILLS/ca.pem")
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    return json.load(opener.open(request, timeout=20))["text"]


def use(index, tool):
    """Asks the hooks first, as the real program does, and has the tool done where none refuses it."""
    step(index, "tool", "ACTIVE", tool_name=tool)
    with open(os.path.expanduser("~/.gemini/config/hooks.json")) as file:
        hooks = json.load(file)
    for name, events in hooks.items():
        for group in events["PreToolUse"]:
            assert group["matcher"] == "*", group
            for hook in group["hooks"]:
                answer = subprocess.run(
                    hook["command"], shell=True, check=True, timeout=hook["timeout"], capture_output=True,
                    input=json.dumps({"toolCall": {"name": tool, "args": {"name": "run_command"}},
                                      "modelName": "m"}).encode()).stdout
                decision = json.loads(answer)
                if decision.get("decision") != "allow":
                    error = f"tool call denied by pre-tool hook {name}: {decision['reason']}"
                    return step(index, "tool", "ERROR", tool_name=tool,
                                tool_info={"name": tool, "error": {"message": error}})
    return step(index, "tool", "DONE", tool_name=tool)


def main():
    arguments = sys.argv[1:]
    assert arguments[:2] == ["--print", ""], arguments
    model = arguments[arguments.index("--model") + 1]
    prompt = json.loads(sys.stdin.readline())["message"]["content"]
    with open(os.path.expanduser("~/.gemini/antigravity-cli/settings.json")) as settings:
        assert json.load(settings)["modelProvider"] == "gemini"
    say("init", cwd=os.getcwd(), tools=["run_command"], model=model)
    try:
        text = ask(model, prompt)
    except urllib.error.HTTPError as error:
        say("result", status="ERROR", error={"code": error.code, "message": "API key not valid"})
        return 1
    use(1, "run_command")
    use(2, "browser")
    step(3, "agent_response", "DONE", text_delta=text)
    say("result", status="SUCCESS", response=text, num_turns=1,
        usage={"input_tokens": 3, "output_tokens": 4})
    return 0


sys.exit(main())
