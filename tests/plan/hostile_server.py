"""A provider of models that means ill. Prints its port; the first part of the path says how it answers.

deepargs, deepevent   tool arguments, an error event, nested 400,000 levels deep
never, silent         a stream that never ends, one that never begins
retry                 429 with a Retry-After of decades
hugeusage             usage counts that overflow 64 bits when they are added
broken                replies that report their usage and break off
nousage               replies without any usage
slowtool              asks for a tool again and again
"""
import http.server
import json
import socketserver
import sys
import time

DEEP = "[" * 400_000 + "]" * 400_000


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def put(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()

    def event(self, value):
        self.put("data: " + (value if isinstance(value, str) else json.dumps(value)) + "\n\n")

    def begin(self, code=200, more=()):
        self.send_response(code)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()

    def say(self, text, usage=(100, 50), call=None):
        delta = {"content": text}
        if call:
            delta["tool_calls"] = [{"index": 0, "id": "c", "type": "function", "function": {"name": call[0], "arguments": call[1]}}]
        self.event({"choices": [{"index": 0, "delta": delta}]})
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}]}
        if usage:
            last["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
        self.event(last)
        self.event("[DONE]")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mode = self.path.strip("/").split("/")[0]
        try:
            if mode == "retry":
                self.begin(429, [("Retry-After", "999999999")])
            elif mode == "silent":
                time.sleep(600)
            else:
                self.begin()
            if mode == "deepargs":
                self.say("", call=("check", '{"constants":{"a":' + DEEP + "}}"))
            if mode == "deepevent":
                self.put('data: {"error":' + DEEP + "}\n\n")
            if mode == "hugeusage":
                self.say("no kernel", (2**63 - 1, 2**64 - 1))
            if mode == "broken":
                self.event({"choices": [{"delta": {"content": "half a rep"}}], "usage": {"prompt_tokens": 9000, "completion_tokens": 1000}})
                self.close_connection = True
                return
            if mode == "nousage":
                self.say("no kernel " + "x" * 8000, None)
            if mode == "slowtool":
                self.say("", call=("run", json.dumps({"source": "x", "sizes": {"N": 1}})))
            while mode == "never":
                self.event({"choices": [{"index": 0, "delta": {"content": " "}}]})
                time.sleep(0.2)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
