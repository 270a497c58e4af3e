#!/usr/bin/env python3
"""A model provider on loopback that really drives an agent, for tests and the demo.

It speaks three wire APIs: OpenAI chat/completions, OpenAI responses and Anthropic messages. A
scenario is a list of steps; each step is a tool call. How far a conversation has come is read from
the request itself (it carries every earlier tool result), so the program keeps no state. After the
last step it replies with a text made from the results: a value that only a tool call in the cell
could read therefore proves that the call ran there.

    provider.py --key KEY [--scenario NAME|FILE] [--log FILE] [--port N] [--port-file FILE]
                [--lifetime SECONDS]

Prints "listening 127.0.0.1:PORT" and serves until killed or until its lifetime is over.

Scenario file: {"steps": [STEP...], "reply": "text with {0}, {1}, {last}, {all}"}
STEP: {"do": "shell", "command": "..."} | {"do": "read", "path": "..."} | {"do": "list",
"path": "..."} | {"do": "write", "path": "...", "content": "..."}; {N} in a step's texts is result N.
{"do": "call", "tool": "...", "arguments": {...}} calls the tool whose name ends so, as MCP clients name theirs.
With "hold": PATH a step is answered once there is a file PATH.go.

Beside its steps a scenario may have "scripts": a list of lists of answers. With the path prefix /script/N each request gets
the next answer of list N, whatever it asks; the last one again once all were given. ANSWER: {"status": 200, "body": any
JSON value, or a text that is sent as it is}.

A base URL with the path prefix /mode/NAME makes it misbehave: see MODES. Every request is logged as
one JSON line with all its headers before it is answered, but for GET /release: that lets the modes
which say so send one event more.
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import ssl
import shlex
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCENARIOS = {
    # No tool at all.
    "hello": {"steps": [], "reply": "Hello from the provider."},
    # Writes, lists and reads files; the reply holds a value made at random inside the cell.
    "files": {
        "steps": [
            {"do": "write", "path": "/workspace/notes.txt", "content": "first line\n"},
            {"do": "shell",
             "command": "od -An -N16 -tx1 /dev/urandom | tr -d ' \\n' > /workspace/value.txt"
                        " && cat /workspace/value.txt"},
            {"do": "list", "path": "/workspace"},
            {"do": "read", "path": "/workspace/value.txt"},
        ],
        "reply": "The value in the cell is {last}",
    },
    # One read of a file that only the cell's agent directory holds.
    "soul": {
        "steps": [{"do": "read", "path": "/agent/SOUL.md"}],
        "reply": "SOUL.md says: {last}",
    },
}

MAX_BODY = 64 << 20
MAX_LOGGED_BODY = 1 << 20
STREAM_EVENTS = 40


class Call:
    """One tool call the provider asks for."""

    def __init__(self, name, arguments, custom_input=None, namespace=None):
        self.name = name
        self.arguments = arguments
        self.custom_input = custom_input
        self.namespace = namespace


def fill(text, results):
    """Puts earlier results into a template: {0}, {1}, ..., {last}, {all}."""

    def value(match):
        key = match.group(1)
        if key == "all":
            return "\n".join(results)
        if key == "last":
            return results[-1] if results else ""
        return results[int(key)] if int(key) < len(results) else match.group(0)

    return re.sub(r"\{(last|all|\d+)\}", value, text)


def as_command(step):
    """Says any step as a shell command, for programs that have a shell tool only."""
    if step["do"] == "shell":
        return step["command"]
    path = shlex.quote(step["path"])
    if step["do"] == "read":
        return f"cat {path}"
    if step["do"] == "list":
        return f"ls -a {path}"
    return f"printf %s {shlex.quote(step['content'])} > {path}"


def hold(step):
    """A step with "hold": PATH waits, a minute at most, for PATH.go, and says so by PATH.held."""
    if "hold" not in step:
        return
    with open(step["hold"] + ".held", "w", encoding="ascii"):
        pass
    end = time.monotonic() + 60
    while not os.path.exists(step["hold"] + ".go") and time.monotonic() < end:
        time.sleep(0.02)


def tool_names(tools):
    names = set()
    for tool in tools or []:
        names.add(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
    return names


def call_by_name(step, names, tools):
    """A call of the tool whose name ends as the step says, which may be in a namespace."""
    for name in sorted(filter(None, names)):
        if name.endswith(step["tool"]):
            return Call(name, step["arguments"])
    for space in tools:
        for tool in space.get("tools", []):
            if tool.get("name") == step["tool"]:
                return Call(tool["name"], step["arguments"], namespace=space["name"])
    return None


def offered_tools(request):
    """The tools of an OpenAI responses request: codex's code mode offers them as the first item."""
    tools = list(request.get("tools") or [])
    items = request.get("input")
    for item in items if isinstance(items, list) else []:
        for space in item.get("tools", []) if item.get("type") == "additional_tools" else []:
            tools += space["tools"]
    return tools


def call_for(step, tools):
    """Picks an offered tool that can do the step; None where the client offers none."""
    names = tool_names(tools)
    do = step["do"]
    if do == "call":
        return call_by_name(step, names, tools)
    if do == "read" and "read_file" in names:
        return Call("read_file", {"path": step["path"]})
    if do == "write" and "write_file" in names:
        return Call("write_file", {"path": step["path"], "content": step["content"]})
    if do == "list" and "list_directory" in names:
        return Call("list_directory", {"path": step["path"]})
    if do == "read" and "Read" in names:
        return Call("Read", {"file_path": step["path"]})
    if do == "write" and "Write" in names:
        return Call("Write", {"file_path": step["path"], "content": step["content"]})
    command = as_command(step)
    if "Bash" in names:
        return Call("Bash", {"command": command, "description": "a step of the scenario"})
    if "exec" in names:  # a script, which calls the other tools
        script = f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}}); text(r.output);"
        return Call("exec", None, custom_input=script)
    if "exec_command" in names:
        return Call("exec_command", {"cmd": command})
    if "shell_command" in names:
        return Call("shell_command", {"command": command})
    if "shell" in names:
        for tool in tools:
            properties = (tool.get("parameters") or tool.get("function", {}).get("parameters")
                          or {}).get("properties", {})
            if properties.get("command", {}).get("type") == "array":
                return Call("shell", {"command": ["/bin/sh", "-c", command]})
        return Call("shell", {"command": command})
    return None


def text_of(content):
    """The text of a message content in any of the three APIs."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(part.get("text", part.get("content", "")))
                       for part in content if isinstance(part, dict))
    return ""


def strip_decoration(text):
    """Takes off what the programs put around a tool's output: line numbers, headings, reminders."""
    text = re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.S)
    if "\nOutput:\n" in text:
        text = text.split("\nOutput:\n", 1)[1]
    if text.startswith("{"):
        try:
            parsed = json.loads(text)
            text = parsed.get("output", text) if isinstance(parsed, dict) else text
        except ValueError:
            pass
    text = re.sub(r"^ *\d+(→|\t)", "", text, flags=re.M)
    return text.strip()


def anthropic_results(body):
    results = []
    for message in body.get("messages", []):
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                results.append(strip_decoration(text_of(block.get("content", ""))))
    return results


def responses_results(body):
    items = body.get("input")
    results = []
    for item in items if isinstance(items, list) else []:
        if item.get("type") not in ("function_call_output", "custom_tool_call_output",
                                    "local_shell_call_output"):
            continue
        output = item.get("output", "")
        if isinstance(output, list) and text_of(output[:1]).startswith("Script completed"):
            output = output[1:]
        results.append(strip_decoration(text_of(output)))
    return results


def chat_results(body):
    return [strip_decoration(text_of(message.get("content", "")))
            for message in body.get("messages", []) if message.get("role") == "tool"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "loopback-provider"
    timeout = 600
    turns = 0  # requests of this connection to the mode that counts them

    # ---- plumbing -------------------------------------------------------------------------

    def log_message(self, *args):
        pass

    def read_body(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                chunk = self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return body
                body += chunk
                if len(body) > MAX_BODY:
                    raise ValueError("body too large")
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BODY:
            raise ValueError("body too large")
        return self.rfile.read(length)

    def write_log(self, body, authorized):
        if not self.server.log:
            return
        entry = {
            "time": time.time(), "method": self.command, "path": self.path,
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "authorized": authorized, "body_bytes": len(body),
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "body": body[:MAX_LOGGED_BODY].decode("utf-8", "replace"),
        }
        with self.server.log_lock:
            self.server.log.write(json.dumps(entry) + "\n")
            self.server.log.flush()

    def authorized(self):
        """True when the key came exactly once, in one of the two headers providers take."""
        key = self.server.key
        found = [value for name, value in self.headers.items()
                 if name.lower() in ("x-api-key", "authorization", "api-key", "x-goog-api-key")]
        return found in ([key], ["Bearer " + key])

    def send_json(self, status, value, headers=()):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error_body(self, kind, text):
        if "/messages" in self.path:
            return {"type": "error", "error": {"type": kind, "message": text}}
        return {"error": {"message": text, "type": kind, "code": kind, "param": None}}

    def start_stream(self, content_type="text/event-stream"):
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def event(self, value, name=None):
        head = f"event: {name}\n" if name else ""
        self.chunk(f"{head}data: {json.dumps(value)}\n\n".encode())

    # ---- requests -------------------------------------------------------------------------

    def do_HEAD(self):
        self.write_log(b"", self.authorized())
        self.send_json(200, None)

    def do_GET(self):
        if self.path == "/release":
            self.server.released.release()
            self.send_json(200, {})
            return
        self.write_log(b"", self.authorized())
        if self.path.split("?")[0].endswith("/v1/models"):
            self.send_json(200, {"data": [{"id": "test-model", "type": "model",
                                           "object": "model"}], "has_more": False})
        else:
            self.send_json(404, self.error_body("not_found_error", "no such path"))

    def do_POST(self):
        body = self.read_body()
        authorized = self.authorized()
        self.write_log(body, authorized)
        mode = re.match(r"/mode/([a-z0-9-]+)/", self.path)
        if mode:
            MODES[mode.group(1)](self)
            return
        if not authorized:
            self.send_json(401, self.error_body("authentication_error", "invalid api key"))
            return
        script = re.match(r"/script/(\d+)/", self.path)
        if script:
            self.serve_script(int(script.group(1)))
            return
        path = self.path.split("?")[0]
        try:
            request = json.loads(body)
        except ValueError:
            self.send_json(400, self.error_body("invalid_request_error", "not JSON"))
            return
        if path.endswith("/chat/completions"):
            self.serve_chat(request)
        elif path.endswith("/responses"):
            self.serve_responses(request)
        elif path.endswith("/messages"):
            self.serve_messages(request)
        elif path.endswith("/messages/count_tokens"):
            self.send_json(200, {"input_tokens": 11})
        else:
            self.send_json(404, self.error_body("not_found_error", "no such path"))

    def serve_script(self, number):
        answers = self.server.scenario["scripts"][number]
        with self.server.script_lock:
            turn = self.server.script_turns.get(number, 0)
            self.server.script_turns[number] = turn + 1
        answer = answers[min(turn, len(answers) - 1)]
        body = answer["body"]
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(answer.get("status", 200))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def next_step(self, results, tools):
        """The call of the next step, or None and the reply."""
        steps = self.server.scenario["steps"]
        if tools and len(results) < len(steps):
            step = {key: fill(value, results) if isinstance(value, str) else value
                    for key, value in steps[len(results)].items()}
            call = call_for(step, tools)
            hold(step)
            if call:
                return call, ""
            return None, "The client offers no tool for the step " + step["do"]
        return None, fill(self.server.scenario["reply"], results)

    # ---- Anthropic messages ---------------------------------------------------------------

    def serve_messages(self, request):
        call, reply = self.next_step(anthropic_results(request), request.get("tools"))
        usage = {"input_tokens": 11, "output_tokens": 7}
        identity = f"msg_{time.time_ns()}"
        if call:
            block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": call.name,
                     "input": call.arguments}
        else:
            block = {"type": "text", "text": reply}
        stop = "tool_use" if call else "end_turn"
        message = {"id": identity, "type": "message", "role": "assistant",
                   "model": request.get("model"), "content": [block], "stop_reason": stop,
                   "stop_sequence": None, "usage": usage}
        if not request.get("stream"):
            self.send_json(200, message)
            return
        self.start_stream()
        opening = dict(message, content=[], stop_reason=None,
                       usage={"input_tokens": 11, "output_tokens": 1})
        self.event({"type": "message_start", "message": opening}, "message_start")
        self.event({"type": "ping"}, "ping")
        empty = dict(block, input={}) if call else {"type": "text", "text": ""}
        self.event({"type": "content_block_start", "index": 0, "content_block": empty},
                   "content_block_start")
        delta = ({"type": "input_json_delta", "partial_json": json.dumps(call.arguments)} if call
                 else {"type": "text_delta", "text": reply})
        self.event({"type": "content_block_delta", "index": 0, "delta": delta},
                   "content_block_delta")
        self.event({"type": "content_block_stop", "index": 0}, "content_block_stop")
        self.event({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                    "usage": {"output_tokens": 7}}, "message_delta")
        self.event({"type": "message_stop"}, "message_stop")
        self.end_stream()

    # ---- OpenAI responses -----------------------------------------------------------------

    def serve_responses(self, request):
        call, reply = self.next_step(responses_results(request), offered_tools(request))
        identity = f"resp_{time.time_ns()}"
        if call and call.custom_input:
            item = {"type": "custom_tool_call", "id": f"ctc_{time.time_ns()}",
                    "call_id": f"call_{time.time_ns()}", "name": call.name,
                    "input": call.custom_input, "status": "completed"}
        elif call:
            item = {"type": "function_call", "id": f"fc_{time.time_ns()}",
                    "call_id": f"call_{time.time_ns()}", "name": call.name,
                    "arguments": json.dumps(call.arguments), "status": "completed"}
            if call.namespace:
                item["namespace"] = call.namespace
        else:
            item = {"type": "message", "id": f"item_{time.time_ns()}", "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": reply, "annotations": []}]}
        usage = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": 18}
        response = {"id": identity, "object": "response", "model": request.get("model"),
                    "status": "completed", "output": [item], "usage": usage}
        if not request.get("stream"):
            self.send_json(200, response)
            return
        self.start_stream()
        started = dict(response, status="in_progress", output=[], usage=None)
        self.event({"type": "response.created", "response": started}, "response.created")
        self.event({"type": "response.output_item.added", "output_index": 0,
                    "item": dict(item, status="in_progress")}, "response.output_item.added")
        if not call:
            self.event({"type": "response.output_text.delta", "item_id": item["id"],
                        "output_index": 0, "content_index": 0, "delta": reply},
                       "response.output_text.delta")
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item},
                   "response.output_item.done")
        self.event({"type": "response.completed", "response": response}, "response.completed")
        self.end_stream()

    # ---- OpenAI chat completions ----------------------------------------------------------

    def serve_chat(self, request):
        call, reply = self.next_step(chat_results(request), request.get("tools"))
        message = {"role": "assistant", "content": None if call else reply}
        if call:
            message["tool_calls"] = [{"id": f"call_{time.time_ns()}", "type": "function",
                                      "function": {"name": call.name,
                                                   "arguments": json.dumps(call.arguments)}}]
        finish = "tool_calls" if call else "stop"
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        head = {"id": f"chatcmpl-{time.time_ns()}", "created": int(time.time()),
                "model": request.get("model")}
        if not request.get("stream"):
            self.send_json(200, dict(head, object="chat.completion", usage=usage, choices=[
                {"index": 0, "message": message, "finish_reason": finish}]))
            return
        self.start_stream()
        delta = dict(message)
        if call:
            delta["tool_calls"] = [dict(message["tool_calls"][0], index=0)]
        kind = "chat.completion.chunk"
        self.event(dict(head, object=kind, choices=[
            {"index": 0, "delta": delta, "finish_reason": None}]))
        self.event(dict(head, object=kind, usage=usage, choices=[
            {"index": 0, "delta": {}, "finish_reason": finish}]))
        self.chunk(b"data: [DONE]\n\n")
        self.end_stream()

    # ---- misbehaviour ---------------------------------------------------------------------

    def refuse(self, status, kind, headers=()):
        self.send_json(status, self.error_body(kind, f"scripted {status}"), headers)

    def redirect(self):
        self.send_json(307, {"moved": True}, [("location", self.server.elsewhere)])

    def huge(self):
        """More than 256 MiB, in 1 MiB chunks."""
        self.start_stream("application/json")
        block = b"x" * (1 << 20)
        for _ in range(300):
            self.chunk(block)
        self.end_stream()

    def slow(self):
        """A stream with pings; after each event it waits to be released."""
        self.start_stream()
        for number in range(STREAM_EVENTS):
            if number % 2:
                self.chunk(f": ping {number}.\n\n".encode())
            else:
                self.event({"type": "ping", "text": f"event {number}."})
            self.wait_for_release()
        self.end_stream()

    def late(self):
        """The head at once, the first event when released."""
        self.start_stream()
        self.wfile.flush()
        self.wait_for_release()
        self.event({"type": "ping"})
        self.end_stream()

    def wait_for_release(self):
        self.server.released.acquire(timeout=self.server.lifetime)

    def hang(self):
        self.close_connection = True
        time.sleep(self.server.lifetime)

    def hang_in_body(self):
        self.start_stream()
        self.event({"type": "ping"})
        self.hang()

    def open_end(self):
        """A whole answer, after which the stream stays open."""
        self.start_stream()
        for delta, reason in (({"content": "x"}, None), ({}, "stop")):
            self.event({"object": "chat.completion.chunk", "choices": [
                {"index": 0, "delta": delta, "finish_reason": reason}]})
        self.hang()

    def half(self):
        """Promises 1000 bytes and sends 10."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b'{"id":"hal')
        self.wfile.flush()
        self.close_connection = True

    def half_stream(self):
        self.start_stream()
        self.event({"type": "ping"})
        self.close_connection = True

    def garbage(self):
        self.wfile.write(b"\x00\x01\x02 this is not HTTP\r\n\r\n" * 4)
        self.wfile.flush()
        self.close_connection = True

    def garbage_json(self):
        self.start_stream()
        self.chunk(b"data: {\"type\": [[[[\n\ndata: \xff\xfe\n\nevent\n\n")
        self.end_stream()

    def both_framings(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4"
                         b"\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        self.close_connection = True

    def switch_protocols(self):
        """A change of protocol nobody asked for, with bytes of the new one."""
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\n"
                         b"connection: upgrade\r\n\r\n" + b"bytes of no answer\n" * 64)
        self.wfile.flush()
        self.close_connection = True

    def switch_second(self):
        """The same to all but the first request of a connection."""
        self.turns += 1
        if self.turns == 1:
            self.send_json(200, {"fine": True})
        else:
            self.switch_protocols()

    def early_hints(self):
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n"
                         b"HTTP/1.1 103 Early Hints\r\nx-request-id: interim\r\n\r\n")
        self.send_json(200, {"fine": True})

    def continue_storm(self):
        """Interim answers without an end."""
        self.close_connection = True
        for _ in range(1 << 20):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def header_flood(self):
        self.send_response(200)
        for number in range(2000):
            self.send_header(f"x-flood-{number}", "y" * 64)
        self.send_header("content-length", "0")
        self.end_headers()

    def gzip_bomb(self):
        body = gzip.compress(b"\0" * (64 << 20))
        self.send_response(200)
        self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def echo_header(self):
        self.send_json(200, {"fine": True}, [("x-request-id", "r-" + self.server.key),
                                             ("set-cookie", "a=" + self.server.key)])

    def echo_body(self):
        """The key in the body, cut in two by a chunk border."""
        self.start_stream()
        half = len(self.server.key) // 2
        self.chunk(b"data: before " + self.server.key[:half].encode())
        time.sleep(0.1)
        self.chunk(self.server.key[half:].encode() + b" after\n\n")
        self.end_stream()

    def large(self):
        """32 MiB, for throughput and slow readers."""
        self.start_stream("application/octet-stream")
        block = b"x" * (1 << 20)
        for _ in range(32):
            self.chunk(block)
        self.end_stream()


MODES = {
    "401": lambda h: h.refuse(401, "authentication_error"),
    "402": lambda h: h.refuse(402, "billing_error"),
    "403": lambda h: h.refuse(403, "permission_error"),
    "404": lambda h: h.refuse(404, "not_found_error"),
    "429": lambda h: h.refuse(429, "rate_limit_error", [("retry-after", "30")]),
    "500": lambda h: h.refuse(500, "api_error"),
    "529": lambda h: h.refuse(529, "overloaded_error"),
    "redirect": Handler.redirect,
    "huge": Handler.huge,
    "large": Handler.large,
    "slow": Handler.slow,
    "late": Handler.late,
    "hang": Handler.hang,
    "hang-in-body": Handler.hang_in_body,
    "open-end": Handler.open_end,
    "half": Handler.half,
    "half-stream": Handler.half_stream,
    "garbage": Handler.garbage,
    "garbage-json": Handler.garbage_json,
    "both-framings": Handler.both_framings,
    "switch-protocols": Handler.switch_protocols,
    "switch-second": Handler.switch_second,
    "early-hints": Handler.early_hints,
    "continue-storm": Handler.continue_storm,
    "header-flood": Handler.header_flood,
    "gzip-bomb": Handler.gzip_bomb,
    "echo-header": Handler.echo_header,
    "echo-body": Handler.echo_body,
}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Says what went wrong, but for a client that went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def load_scenario(text):
    if text in SCENARIOS:
        return SCENARIOS[text]
    with open(text, encoding="utf-8") as file:
        scenario = json.load(file)
    if not isinstance(scenario.get("steps"), list) or not isinstance(scenario.get("reply"), str):
        sys.exit(f"provider.py: {text}: needs \"steps\" (a list) and \"reply\" (a text)")
    return scenario


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--key", help="the key it wants; default $PROVIDER_KEY")
    parser.add_argument("--scenario", default="files")
    parser.add_argument("--log")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    parser.add_argument("--tls", help="a PEM file of its certificate and key: then it speaks TLS")
    parser.add_argument("--lifetime", type=float, default=600.0)
    parser.add_argument("--elsewhere", default="http://127.0.0.1:9/elsewhere",
                        help="where the redirect mode points")
    options = parser.parse_args()

    server = Server(("127.0.0.1", options.port), Handler)
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.tls)
        # The handshake is each connection's own thread's, so that a slow one stops nobody.
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    server.key = options.key or os.environ.get("PROVIDER_KEY") or sys.exit("no --key")
    server.scenario = load_scenario(options.scenario)
    server.lifetime = options.lifetime
    server.elsewhere = options.elsewhere
    server.released = threading.Semaphore(0)
    server.log = open(options.log, "a", encoding="utf-8") if options.log else None
    server.log_lock = threading.Lock()
    server.script_lock = threading.Lock()
    server.script_turns = {}
    threading.Thread(target=lambda: (time.sleep(options.lifetime), os._exit(3)),
                     daemon=True).start()
    port = server.server_address[1]
    if options.port_file:
        with open(options.port_file + ".new", "w", encoding="ascii") as file:
            file.write(f"{port}\n")
        os.rename(options.port_file + ".new", options.port_file)
    print(f"listening 127.0.0.1:{port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
