#!/usr/bin/python3 -ISB
"""Stands in for claude: the prompt on standard input, the model's requests for files done with its Read, and the events that
taskcell knows of it, with one real request to the provider for each turn."""

import json
import os
import sys
import urllib.request

TURNS = 8
READ = {"name": "Read", "description": "Reads a file",
        "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}}


def ask(messages):
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        data=json.dumps({"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 64, "messages": messages, "tools": [READ]}).encode(),
        headers={"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01",
                 "content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))


def use(block):
    assert block["name"] == "Read", block
    with open(block["input"]["file_path"], encoding="utf-8") as file:
        return {"type": "tool_result", "tool_use_id": block["id"], "content": file.read()}


def main():
    arguments = sys.argv[1:]
    assert arguments[:3] == ["-p", "--output-format", "stream-json"], arguments
    messages = [{"role": "user", "content": sys.stdin.read()}]
    for turn in range(1, TURNS):
        answer = ask(messages)
        print(json.dumps({"type": "assistant", "message": answer}), flush=True)
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            text = "".join(block["text"] for block in answer["content"])
            print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "num_turns": turn, "result": text,
                              "usage": answer["usage"]}))
            return
        messages += [{"role": "assistant", "content": answer["content"]},
                     {"role": "user", "content": [use(block) for block in calls]}]
    sys.exit("the model does not come to an end")


main()
