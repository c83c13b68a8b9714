"""What the server's answers look like to a model: sizes, the command's own words, annotations, resources, history, errors."""
import asyncio
import json
import os
import pathlib

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")
mcp = pytest.importorskip("mcp")
from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402


def in_session(work, tmp_path):
    async def main():
        parameters = StdioServerParameters(command=PROGRAM, args=["mcp", "--root", str(SOURCE)], env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path)})
        async with stdio_client(parameters) as (read, write):
            async with ClientSession(read, write) as session:
                await session.initialize()
                return await work(session)

    return asyncio.run(asyncio.wait_for(main(), 300))


def size(result):
    return len(json.dumps(result.structuredContent, separators=(",", ":")))


@pytest.mark.parametrize("file", ["kernels/gemm_sm90.py", "kernels/softmax_sm90.py", "kernels/split_k.py"])
def test_a_proof_is_short(tmp_path, file):
    result = in_session(lambda s: s.call_tool("check", {"file": file}), tmp_path)
    facts = result.structuredContent
    assert facts["verdict"] == "proved" and size(result) < 2000
    assert file + ":" in result.content[0].text.splitlines()[0] and ": proved (" in result.content[0].text
    assert sum(k.get("variants", 1) for k in facts["kernels"]) == result.content[0].text.count(": proved (")


def test_a_violation_is_short_and_says_what_matters(tmp_path):
    text = (SOURCE / "kernels/gemm_sm90.py").read_text().replace("                tw.fence_async()\n", "", 1)
    result = in_session(lambda s: s.call_tool("check", {"source": text, "constants": {"T": "bf16"}}), tmp_path)
    facts = result.structuredContent
    assert facts["verdict"] == "violated" and size(result) < 4000
    found = facts["kernels"][0]["counterexample"]
    assert found["code"] == "TW2003" and found["place"]["line"] and found["hint"] and found["missing"]
    assert "violated[TW2003]" in result.content[0].text and "hint:" in result.content[0].text


def test_detail_gives_everything(tmp_path):
    result = in_session(lambda s: s.call_tool("check", {"file": "kernels/vector_add.py", "detail": True}), tmp_path)
    assert len(result.structuredContent["kernels"][0]["assertions"]) > 5


def test_tools_say_what_they_may_change(tmp_path):
    tools = {t.name: t for t in in_session(lambda s: s.list_tools(), tmp_path).tools}
    assert tools["check"].annotations.readOnlyHint and not tools["check"].annotations.openWorldHint
    assert not tools["optimize_start"].annotations.readOnlyHint and tools["optimize_stop"].annotations.destructiveHint
    assert "history" in tools and "detail" in tools["check"].inputSchema["properties"]


def test_documents_and_kernels_are_resources(tmp_path):
    async def work(session):
        listed = (await session.list_resources()).resources
        page = await session.read_resource("tilewright://docs/language.md")
        kernel = await session.read_resource("tilewright://kernels/gemm_sm90.py")
        try:
            await session.read_resource("tilewright://docs/..%2fHACKING.md")
            refused = False
        except Exception:  # noqa: BLE001
            refused = True
        return listed, page.contents[0].text, kernel.contents[0].text, refused

    listed, page, kernel, refused = in_session(work, tmp_path)
    assert {"language.md", "gemm_sm90.py"} <= {r.name for r in listed} and all(r.mimeType for r in listed)
    assert page.startswith("# The language") and "tw.wgmma" in kernel and refused


def test_history_and_errors_in_the_tools_own_terms(tmp_path):
    async def work(session):
        return (await session.call_tool("history", {}), await session.call_tool("history", {"step": -1}), await session.call_tool("check", {"file": "kernels/none.py"}),
                await session.call_tool("check", {"file": "kernels/vector_add.py", "detail": "yes"}), await session.call_tool("check", {}))

    none, bad, missing, detail, empty = in_session(work, tmp_path)
    assert not none.isError and bad.isError and "step" in bad.content[0].text
    assert missing.isError and "kernels/none.py" in missing.content[0].text
    assert detail.isError and "detail" in detail.content[0].text and empty.isError


def test_pictures_are_images_and_tune_lists_its_points(tmp_path):
    import base64

    async def work(session):
        drawn = await session.call_tool("layout", {"expression": "(8,8):(8,1)", "picture": True})
        points = await session.call_tool("tune", {"file": "kernels/gemm_small_sm90.py", "sizes": {"M": 256, "N": 256, "K": 256}, "dry_run": True, "limit": 4})
        empty = await session.call_tool("tune", {"file": "kernels/gemm_small_sm90.py", "sizes": {}})
        return drawn, points, empty, {t.name: t for t in (await session.list_tools()).tools}

    drawn, points, empty, tools = in_session(work, tmp_path)
    image = next(c for c in drawn.content if c.type == "image")
    assert image.mimeType == "image/svg+xml" and base64.b64decode(image.data).decode() == next(c.text for c in drawn.content if c.type == "text" and c.text.startswith("<svg"))
    assert not points.isError and "STAGES" in points.content[0].text and len(points.content[0].text) < 4000
    assert empty.isError and "sizes" in empty.content[0].text
    assert not tools["tune"].annotations.readOnlyHint


def test_an_error_is_said_once_in_words_and_in_terms_of_the_arguments(tmp_path):
    text = (SOURCE / "kernels/vector_add.py").read_text()
    wrong = in_session(lambda s: s.call_tool("check", {"source": text, "kernel": "vector_ad"}), tmp_path)
    assert wrong.isError and wrong.content[0].text == "there is no kernel 'vector_ad' in kernel.py\nfix: did you mean vector_add?\n"
    assert wrong.structuredContent["schema"] == "tilewright error 1"
    lacking = in_session(lambda s: s.call_tool("run", {"source": text, "sizes": {}}), tmp_path)
    assert lacking.isError and "fix: add sizes: N=..." in lacking.content[0].text and "--set" not in lacking.content[0].text
    unknown = in_session(lambda s: s.call_tool("check", {"source": text, "details": True}), tmp_path)
    assert unknown.isError and "detail, " in unknown.content[0].text
