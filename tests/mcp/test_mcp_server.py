"""The MCP server as the official SDK's client meets it."""
import asyncio
import json
import os
import pathlib
import sys

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")
mcp = pytest.importorskip("mcp")
from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

BROKEN_SWIZZLE = (SOURCE / "tests/verify/bugs/swizzle_ignored_by_a_recast_view.py").read_text()
VECTOR_ADD = (SOURCE / "kernels/vector_add.py").read_text()


def in_session(work, tmp_path):
    """Runs `work(session)` in a session with a fresh server."""

    async def main():
        environment = {**os.environ, "TILEWRIGHT_STATE": str(tmp_path)}
        parameters = StdioServerParameters(command=PROGRAM, args=["mcp"], env=environment)
        async with stdio_client(parameters) as (read, write):
            async with ClientSession(read, write) as session:
                await session.initialize()
                return await work(session)

    return asyncio.run(asyncio.wait_for(main(), 120))


def text_of(result):
    return "\n".join(part.text for part in result.content)


def test_the_tools_are_listed_with_schemas(tmp_path):
    async def work(session):
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in in_session(work, tmp_path)}
    for name in ("check", "explain", "run", "emit", "layout", "mutate", "ir", "doctor", "reference", "bench", "profile",
                 "knowledge", "submit", "optimize_start", "optimize_status", "optimize_result", "optimize_stop"):
        assert name in tools, sorted(tools)
        assert tools[name].description
        assert tools[name].inputSchema["type"] == "object"
        assert tools[name].inputSchema["additionalProperties"] is False
    assert tools["run"].inputSchema["required"] == ["sizes"]


def test_check_proves_and_refuses(tmp_path):
    async def work(session):
        return (await session.call_tool("check", {"source": VECTOR_ADD}), await session.call_tool("check", {"source": BROKEN_SWIZZLE}),
                await session.call_tool("check", {"source": "def broken(:\n"}))

    good, wrong, broken = in_session(work, tmp_path)
    assert not good.isError
    assert all(kernel["verdict"] == "proved" for kernel in good.structuredContent["kernels"])
    assert good.structuredContent["file"] == "kernel.py", "no path of the server's own may show"
    assert not wrong.isError, "a violated kernel is an answer, not an error"
    assert wrong.structuredContent["kernels"][0]["counterexample"]["code"] == "TW1001"
    assert broken.structuredContent["errors"] >= 1


def test_a_scripted_client_repairs_a_broken_swizzle_from_its_counterexample(tmp_path):
    """The client looks only at what the counterexample says: the place, the statement's line, the tags."""

    async def work(session):
        source = BROKEN_SWIZZLE
        steps = []
        for _ in range(4):
            report = (await session.call_tool("check", {"source": source})).structuredContent
            kernel = report["kernels"][0]
            steps.append(kernel["verdict"])
            if kernel["verdict"] == "proved":
                ran = await session.call_tool("run", {"source": source, "sizes": {"M": 70, "N": 72}})
                return steps, source, ran
            found = kernel["counterexample"]
            assert found["confirmed"] and found["expected_tag"] != found["actual_tag"]
            lines = source.splitlines()
            at = found["place"]["line"] - 1
            assert "tw.load(plain)" in lines[at], "the counterexample points at the read"
            # The value has another origin than it should: the bytes are read through another layout than they were written with.
            # Which buffer does the read name, and is it a view of another one whose layout has a swizzle?
            explained = await session.call_tool("explain", {"code": found["code"]})
            assert not explained.isError
            view = "plain"
            declared = next(line for line in lines if line.strip().startswith(f"{view} = tw.overlay("))
            original = declared.split("(", 1)[1].split(",")[0]
            assert any(f"{original} = tw.shared(" in line and "swizzle=" in line for line in lines)
            lines[at] = lines[at].replace(f"tw.load({view})", f"tw.load({original})")
            source = "\n".join(lines) + "\n"
        raise AssertionError(f"not repaired: {steps}")

    steps, source, ran = in_session(work, tmp_path)
    assert steps == ["violated", "proved"]
    assert "tw.load(s)" in source
    assert all(one["right"] for one in ran.structuredContent["runs"])


def test_layouts_are_evaluated_and_drawn(tmp_path):
    async def work(session):
        return (await session.call_tool("layout", {"expression": "(8,8):(8,1)", "picture": True, "json": True}),
                await session.call_tool("layout", {"expression": "(((("}), await session.call_tool("layout", {"expression": "--help"}))

    drawn, wrong, option = in_session(work, tmp_path)
    assert drawn.content[1].text.startswith("<svg")
    assert json.loads(drawn.content[0].text)["size"] == 64
    assert wrong.isError and text_of(wrong)
    assert option.isError and "Usage" not in text_of(option), "an expression is never taken for an option"


TASK = """name = "scale"
computes = "Y[m, n] = bf16(f32(X[m, n]) * 2.0)"
target = "sm_90a"
[sizes]
M = 512
N = 1024
[tensors]
X = { dtype = "bf16", dims = ["M", "N"] }
Y = { dtype = "bf16", dims = ["M", "N"] }
"""


def test_a_client_starts_an_optimisation_and_submits_its_result(tmp_path):
    async def work(session):
        started = await session.call_tool("optimize_start", {"task": TASK, "steps": 2})
        job = started.structuredContent["job"]
        for _ in range(600):
            status = await session.call_tool("optimize_status", {"job": job})
            if status.structuredContent["over"]:
                break
            await asyncio.sleep(0.1)
        best = (await session.call_tool("optimize_result", {"job": job})).structuredContent
        submitted = await session.call_tool("submit", {"task": TASK, "source": best["source"]})
        broken = await session.call_tool("submit", {"task": TASK, "source": best["source"].replace("tw.store(", "tw.stoer(")})
        found = await session.call_tool("knowledge", {"action": "list"})
        return status, best, submitted, broken, found, await session.call_tool("optimize_status", {"job": "job-9"})

    status, best, submitted, broken, found, unknown = in_session(work, tmp_path)
    assert status.structuredContent["status"] == 0, text_of(status)
    assert best["verdict"] == "proved"
    assert not found.isError
    assert unknown.isError
    assert submitted.structuredContent["passed"] is True and submitted.structuredContent["verdict"] == "proved"
    assert broken.structuredContent["passed"] is False and "stoer" in broken.structuredContent["feedback"]


def test_a_task_is_stated_in_one_line(tmp_path):
    line = {"computes": "Y[m, n] = f16(f32(X[m, n]) * s)", "sizes": {"M": 512, "N": 1024}, "scalars": {"s": 2.5}, "dtypes": {"X": "bf16"}, "name": "scaled"}

    async def work(session):
        job = (await session.call_tool("optimize_start", {**line, "steps": 1})).structuredContent["job"]
        for _ in range(600):
            status = await session.call_tool("optimize_status", {"job": job})
            if status.structuredContent["over"]:
                break
            await asyncio.sleep(0.1)
        best = (await session.call_tool("optimize_result", {"job": job})).structuredContent
        return best, await session.call_tool("submit", {**line, "source": best["source"]}), await session.call_tool("submit", {**line, "computes": "Y[m, n] = f16(f32(X[m, n]))", "source": best["source"]})

    best, same, other = in_session(work, tmp_path)
    assert "def scaled" in best["source"] and "tw.Tensor(bf16, M, N)" in best["source"]
    assert same.structuredContent["passed"] is True and same.structuredContent["verdict"] == "proved"
    assert other.structuredContent["failure_class"] == "specification"


def test_wrong_arguments_are_answered_as_tool_errors(tmp_path):
    cases = [
        ("submit", {"source": "x"}, "one of 'task', 'task_file' and 'computes'"),
        ("submit", {"source": "x", "task": "x", "computes": "Y[m] = X[m]"}, "one of 'task', 'task_file' and 'computes'"),
        ("submit", {"source": "x", "task": "x", "sizes": {"M": 4}}, "'sizes' belongs to 'computes'"),
        ("submit", {"source": "x", "computes": "Y[m] = X[m]", "sizes": {"M,N": 4}}, "is no name"),
        ("optimize_start", {"computes": "Y[m] = X[m]", "sizes": {"M": "4"}}, "must be of type integer"),
        ("check", {}, "either 'source' or 'file'"),
        ("check", {"source": 3}, "must be of type string"),
        ("check", {"source": "x", "colour": "red"}, "there is no argument"),
        ("check", {"source": "x", "search_seconds": 1e9}, "at most 60"),
        ("check", {"source": VECTOR_ADD, "constants": {"BM": "many"}}, "'BM'"),
        ("check", {"file": "/no/such/file.py"}, "no/such/file.py"),
        ("check", {"file": "--version"}, "--version"),
        ("check", {"source": "x" * 1100000}, "1048576"),
        ("run", {"source": VECTOR_ADD}, "sizes"),
        ("run", {"source": VECTOR_ADD, "sizes": {"N;rm -rf": 3}}, "no name of a size"),
        ("run", {"source": VECTOR_ADD, "sizes": {"N": 9223372036854775807}}, ""),
        ("emit", {"source": VECTOR_ADD, "form": "poem"}, "must be one of"),
        ("explain", {"code": "no such code"}, "there is no code"),
    ]

    async def work(session):
        return [await session.call_tool(name, arguments) for name, arguments, _ in cases]

    for (name, arguments, expected), result in zip(cases, in_session(work, tmp_path)):
        assert result.isError, (name, str(arguments)[:100], text_of(result)[:300])
        assert expected in text_of(result), text_of(result)[:300]


def test_an_unknown_tool_is_a_protocol_error(tmp_path):
    async def work(session):
        with pytest.raises(mcp.McpError):
            await session.send_request(
                mcp.types.ClientRequest(mcp.types.CallToolRequest(method="tools/call", params=mcp.types.CallToolRequestParams(name="format_disk", arguments={}))), mcp.types.CallToolResult)
        return await session.call_tool("explain", {"code": "TW2001"})

    assert not in_session(work, tmp_path).isError


class Raw:
    """A server spoken to in bytes."""

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(PROGRAM, "mcp", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=64 << 20)
        return self

    async def __aexit__(self, *_):
        if not self.process.stdin.is_closing():
            self.process.stdin.close()
        self.status = await asyncio.wait_for(self.process.wait(), 30)

    async def send(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode())
        self.process.stdin.write(b"\n")
        await self.process.stdin.drain()

    async def answer(self):
        return json.loads(await asyncio.wait_for(self.process.stdout.readline(), 60))


def call(number, name, arguments, **meta):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})}}


def test_hostile_lines_are_answered_and_never_end_the_server():
    lines = [
        (b"not json", -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1", -32700),
        (b"\xff\xfe\x00\x01", -32700),
        (b"[" * 100000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}, -32602),
        (b"x" * (17 << 20), -32700),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 5}}, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "check", "arguments": 5}}, None),
    ]

    async def main():
        async with Raw() as server:
            for line, code in lines:
                await server.send(line)
                reply = await server.answer()
                assert reply.get("error", {}).get("code") == code, (str(line)[:80], reply)
            # Notifications, responses and empty lines are not answered.
            for line in (b"", b"   ", {"jsonrpc": "2.0", "method": "notifications/anything"}, {"jsonrpc": "2.0", "id": 9, "result": {}},
                         {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}, {"jsonrpc": "2.0", "method": "notifications/cancelled"}):
                await server.send(line)
            await server.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
            assert (await server.answer()) == {"jsonrpc": "2.0", "id": "last", "result": {}}
        assert server.status == 0

    asyncio.run(main())


def test_versions_are_negotiated():
    async def main():
        async with Raw() as server:
            for asked, given in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
                await server.send({"jsonrpc": "2.0", "id": asked, "method": "initialize", "params": {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
                assert (await server.answer())["result"]["protocolVersion"] == given

    asyncio.run(main())


# Every thread is emulated, under many schedules: minutes of work, which is cancelled in the middle.
VERY_SLOW = {"source": VECTOR_ADD, "sizes": {"N": 4_000_000}, "schedules": 64}


def test_long_work_reports_progress_and_can_be_cancelled():
    async def main():
        async with Raw() as server:
            await server.send(call(1, "run", VERY_SLOW, progressToken="p"))
            seen = []
            while len(seen) < 3:
                message = await server.answer()
                assert message["method"] == "notifications/progress" and message["params"]["progressToken"] == "p"
                seen.append(message["params"]["progress"])
            assert 0 < seen[0] < seen[1] < seen[2]
            await server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            # Cancelled work is not answered, other work is, and the server ends at once.
            await server.send(call(2, "run", VERY_SLOW))
            await server.send(call(3, "explain", {"code": "TW2001"}))
            await server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
            message = await server.answer()
            while "id" not in message:   # progress of the first call that was on its way
                message = await server.answer()
            assert message["id"] == 3
            await server.send({"jsonrpc": "2.0", "id": 4, "method": "ping"})
            assert (await server.answer())["id"] == 4
            # The end of input ends what is under way.
            await server.send(call(5, "run", VERY_SLOW))
            began = asyncio.get_running_loop().time()
        assert server.status == 0
        assert asyncio.get_running_loop().time() - began < 10

    asyncio.run(main())
