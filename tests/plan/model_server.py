"""A stand-in for a model's provider, speaking the wire formats of OpenAI's chat completions and Anthropic's messages.

Prints its port. The first part of the path is the scenario: what it answers to the n-th question. Every question is written to the log
(argv[1], one JSON object a line), without its headers: those hold the key.
"""
import http.server
import json
import os
import pathlib
import socketserver
import sys
import threading

SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
KERNEL = (SOURCE / "kernels" / "vector_add.py").read_text()
LOG = open(sys.argv[1], "a", buffering=1) if len(sys.argv) > 1 else None
# Replies of a full run, one after another: a JSON list of texts.
SCRIPT = json.loads(pathlib.Path(sys.argv[2]).read_text()) if len(sys.argv) > 2 else []
counts, lock = {}, threading.Lock()


def fenced(source):
    return f"Note: one line about it\n\n```python\n{source}```\n"


def openai_events(text, calls=(), finish="stop", usage=(1000, 200)):
    yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    for at in range(0, len(text), 997):
        yield {"choices": [{"index": 0, "delta": {"content": text[at:at + 997]}, "finish_reason": None}]}
    for index, (name, arguments) in enumerate(calls):
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": ""}}]}}]}
        for at in range(0, len(arguments), 50):
            yield {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": arguments[at:at + 50]}}]}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else finish}]}
    yield {"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}}


def anthropic_events(text, calls=(), finish="end_turn", usage=(1000, 200)):
    yield {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": usage[0], "output_tokens": 1}}}
    index = 0
    if text:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        yield {"type": "ping"}
        for at in range(0, len(text), 997):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[at:at + 997]}}
        yield {"type": "content_block_stop", "index": 0}
        index = 1
    for name, arguments in calls:
        yield {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}}
        for at in range(0, len(arguments), 50):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": arguments[at:at + 50]}}
        yield {"type": "content_block_stop", "index": index}
        index += 1
    finish = "tool_use" if calls else {"length": "max_tokens", "stop": "end_turn"}.get(finish, finish)
    yield {"type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": None}, "usage": {"output_tokens": usage[1]}}
    yield {"type": "message_stop"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, scenario, *rest = self.path.split("/")
        self.openai = rest[-1] == "completions"
        with lock:
            n = counts[scenario] = counts.get(scenario, 0) + 1
        key = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
        if LOG:
            LOG.write(json.dumps({"scenario": scenario, "n": n, "path": self.path, "with_key": bool(key), "body": body}) + "\n")
        self.close_connection = True
        getattr(self, scenario.split("-")[0])(n, scenario, body, key)

    # -- answers

    def refuse(self, status, message="no", **headers):
        text = json.dumps({"error": {"type": "some_error", "message": message}}).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def stream(self, text, calls=(), finish="stop", events=None, last=True):
        self.begin()
        make = openai_events if self.openai else anthropic_events
        made = list(make(text, calls, finish))
        for event in made[:events]:
            kind = "" if self.openai else f"event: {event['type']}\n"
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())
        if self.openai and last and events is None:
            self.wfile.write(b"data: [DONE]\n\n")

    # -- scenarios

    def good(self, n, *_):
        self.stream(fenced(KERNEL))

    def status(self, n, scenario, body, key):  # status-401
        self.refuse(int(scenario.split("-")[1]), f"refused; the key was {key}")

    def flaky(self, n, scenario, *_):  # flaky-529: twice, then well
        if n <= 2:
            return self.refuse(int(scenario.split("-")[1]), "slow down", retry_after_ms="20")
        self.stream(fenced(KERNEL))

    def patience(self, n, *_):
        return self.refuse(429, "wait", Retry_After="1") if n == 1 else self.stream(fenced(KERNEL))

    def overloaded(self, n, *_):
        if n > 1:
            return self.stream(fenced(KERNEL))
        self.begin()
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        self.wfile.write(f"data: {json.dumps(error)}\n\n".encode())

    def truncated(self, n, *_):
        self.stream(fenced(KERNEL), events=2)

    def nonsense(self, n, *_):
        self.begin()
        self.wfile.write(b"data: {\"choices\": [{]\n\ndata: <html>\n\n")

    def types(self, n, *_):
        self.begin()
        for data in ({"choices": 5}, {"choices": [7]}, {"choices": [{"delta": 3}]}, {"choices": [{"delta": {"content": 9, "tool_calls": {"a": 1}}}]}, {"usage": "many"},
                     {"type": 7}, {"type": "message_start", "message": []}, {"type": "content_block_delta", "delta": [], "index": "x"}, {"type": "message_delta", "delta": "x", "usage": 3}):
            self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())

    def binary(self, n, *_):
        self.begin()
        self.wfile.write(bytes(range(256)) * 300)

    def endless(self, n, *_):
        self.begin()
        try:
            for _ in range(3000):
                self.wfile.write(b"data: " + b"x" * 65536)
        except OSError:
            pass

    def huge(self, n, *_):
        try:
            self.stream("word " * 2_000_000)
        except OSError:
            pass

    def empty(self, n, *_):
        self.stream("")

    def prose(self, n, *_):
        self.stream("I would rather talk about the weather.")

    def cut(self, n, *_):
        self.stream(fenced(KERNEL), finish="length")

    def unclosed(self, n, *_):
        self.stream("```python\n" + KERNEL[: len(KERNEL) // 2])

    def bare(self, n, *_):
        self.stream(KERNEL)

    def silence(self, n, *_):
        pass  # closes without an answer

    def tools(self, n, scenario, body, *_):
        if n == 1:
            return self.stream("Let me see.", [("check", json.dumps({"source": KERNEL})), ("format_disk", "{}"), ("check", "{broken"), ("check", json.dumps({"file": "/etc/passwd"}))])
        self.stream(fenced(KERNEL))

    def forever(self, n, *_):
        self.stream("", [("explain", json.dumps({"code": "TW2001"}))])

    def script(self, n, *_):
        self.stream(SCRIPT[min(n, len(SCRIPT)) - 1])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
