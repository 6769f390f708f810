"""MCP servers that answer as no SDK would: patterns that hang, broken and endless replies."""

import json
import re
import shlex
import sys

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from grupo.envs.tools import McpServer, mcp_connection, mcp_limits
from grupo.envs.tools.mcp import connection_of
from grupo.envs.tools.mcp_connection import McpToolError
from grupo.util import reply_limit
from grupo.util.errors import ConfigError
from grupo.util.limits import REPLY_SIZE, Limit
from tests.helpers.fast_cases import fast_cases
from tests.helpers.http_serving import serving
from tests.helpers.processes import is_running, wait_until

TOKEN = "tok-4fT9qLz81xVbWm0RkE"
START = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
HANGS = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}


def answering(tool, reply, **page):
    """The application of a server with one tool, whose calls get the bytes of `reply(id)`.

    Args:
        tool: Fields of the tool.
        reply: The reply to a call and its content type, by the number of the call.
        page: Further members of the result that lists the tools.
    """
    listed = {"name": "tool", "inputSchema": {"type": "object"}, **tool}
    results = {"initialize": START, "tools/list": {"tools": [listed], **page}}

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        body, status, kind = b"", 405, b"application/json"
        if scope["method"] == "POST":
            request = json.loads((await receive())["body"])
            status = 202 if "id" not in request else 200
            if request["method"] == "tools/call":
                body, kind = reply(request["id"])
            elif status == 200:
                body = answer(request["id"], results.get(request["method"], {}))
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def answer(number, result):
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def tool_of(url):
    (tool,) = McpServer(f"{url}/mcp", token_env="GRUPO_TEST_TOKEN").tool_specs()
    return tool.function


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("GRUPO_TEST_TOKEN", TOKEN)


def test_a_pattern_for_results_is_not_searched():
    content = [{"type": "text", "text": "a lake"}]
    result = {"content": content, "structuredContent": {"a": "a" * 22 + "!"}}
    app = answering(
        {"outputSchema": HANGS}, lambda number: (answer(number, result), b"application/json")
    )
    with serving(app) as (url, _):
        assert tool_of(url)() == "a lake"
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (f'{{"x": "{TOKEN}\x1b[31m', "application/json"),
        (f'event: message\ndata: {{"x": "{TOKEN}\x1b[31m\n\n', "text/event-stream"),
        ("", f"text/{TOKEN}"),
    ],
)
def test_a_reply_that_is_none_is_not_written_to_the_terminal(body, kind, capfd, caplog):
    with serving(answering({}, lambda _: (body.encode(), kind.encode()))) as (url, _):
        with pytest.raises(McpToolError) as raised:
            tool_of(url)()
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()
    for text in (str(raised.value), *capfd.readouterr(), caplog.text):
        assert TOKEN.lower() not in text.lower()


def test_a_reply_beyond_the_limit_is_an_error(monkeypatch):
    monkeypatch.setattr(reply_limit, "REPLY_SIZE", Limit("a reply", 10_000, "bytes", ""))

    def reply(number):
        content = [{"type": "text", "text": "x" * 10_000}]
        return answer(number, {"content": content}), b"application/json"

    with serving(answering({}, reply)) as (url, _):
        with pytest.raises(McpToolError, match="too large: at most 10,000 bytes"):
            tool_of(url)()
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()


def test_an_event_beyond_the_limit_is_an_error():
    def reply(number):
        content = [{"type": "text", "text": "x" * REPLY_SIZE.maximum}]
        event = b"event: message\ndata: " + answer(number, {"content": content}) + b"\n\n"
        return event, b"text/event-stream"

    with serving(answering({}, reply)) as (url, _):
        with pytest.raises(McpToolError, match="SSE stream"):
            tool_of(url)()
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()


@pytest.mark.parametrize("codec", ["punycode", "rot13", "zlib_codec"])
def test_the_codec_that_a_server_names_for_its_events_is_not_used(codec):
    def reply(number):
        result = {"content": [{"type": "text", "text": "ein schöner See"}]}
        event = b"event: message\ndata: " + answer(number, result) + b"\n\n"
        return event, f"text/event-stream; charset={codec}".encode()

    with serving(answering({}, reply)) as (url, _):
        assert tool_of(url)() == "ein schöner See"


def test_a_reply_of_too_many_parts_is_an_error(monkeypatch):
    monkeypatch.setattr(mcp_limits, "REPLY_VALUES", Limit("a reply", 20, "values", ""))
    sizes = iter([100, 1])

    def reply(number):
        content = [{"type": "text", "text": "x"}] * next(sizes)
        return answer(number, {"content": content}), b"application/json"

    with serving(answering({}, reply)) as (url, _):
        function = tool_of(url)
        with pytest.raises(McpToolError, match="too many values: at most 20 values"):
            function()
        assert function() == "x"
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/message", "params": {"level": "info", "data": "x"}},
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}, "id": 7},
    ],
)
def test_a_server_that_sends_too_many_messages_is_connected_to_again(monkeypatch, message):
    limit = Limit("a server", 20, "messages", "")
    monkeypatch.setattr(mcp_connection, "SERVER_MESSAGES", limit)
    floods = iter([True, False])

    def reply(number):
        if next(floods):
            event = f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\n\n"
            return event.encode() * 100, b"text/event-stream"
        content = [{"type": "text", "text": "a lake"}]
        return answer(number, {"content": content}), b"application/json"

    with serving(answering({}, reply)) as (url, _):
        function = tool_of(url)
        reason = r"too many messages of the server: at most 20 messages\. The connection was ended"
        with pytest.raises(McpToolError, match=reason):
            function()
        assert function() == "a lake"
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MAX_PAGES", 3, r"too many pages: at most 3"),
        ("SERVER_TOOLS", Limit("", 5, "tools", ""), r"too many tools: at most 5 tools"),
        ("REPLY_SIZE", Limit("", 500, "bytes", ""), r"list of tools is too large: at most 500 b"),
    ],
)
def test_a_list_of_tools_without_end_is_refused(monkeypatch, limit, value, reason):
    monkeypatch.setattr(mcp_limits, limit, value)
    app = answering({}, lambda _: (b"", b""), nextCursor="next")
    with serving(app) as (url, _):
        with pytest.raises(ConfigError, match=reason):
            tool_of(url)
        connection_of(f"{url}/mcp", (), "GRUPO_TEST_TOKEN").close()


# the SDK's server on standard input and output, with a tool that prints to its output itself
PROGRAM = """
import os, sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("hostile")
output = os.dup(1)  # the SDK turns the first one into the error output
@server.tool()
def tool(pid_file: str) -> str:
    open(pid_file, "w").write(str(os.getpid()))
    for _ in range({lines}):
        os.write(output, b" " * {size} + {end!r})
    return "a lake"
server.run("stdio")
"""
LIMIT = REPLY_SIZE.maximum


def command(size, lines, end):
    program = PROGRAM.format(size=size, lines=lines, end=end)
    return shlex.join((sys.executable, "-c", program))


@pytest.mark.parametrize(
    "address", fast_cases(1, [command(LIMIT + 1, 1, b"\n"), command(LIMIT // 8, 10**6, b"")])
)
def test_a_line_of_a_program_beyond_the_limit_is_an_error_and_ends_the_program(address, tmp_path):
    (tool,) = McpServer(address, call_time_limit=60.0).tool_specs()
    message = f"the reply is too large: {REPLY_SIZE.allowed}. The connection was ended"
    with pytest.raises(McpToolError, match=re.escape(message)):
        tool.function(pid_file=str(tmp_path / "pid"))
    process = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(process), 20)
    connection_of(address).close()


@pytest.mark.slow
def test_a_line_of_a_program_up_to_the_limit_is_read(tmp_path):
    (tool,) = McpServer(command(LIMIT, 1, b"\n"), call_time_limit=60.0).tool_specs()
    assert tool.function(pid_file=str(tmp_path / "pid")) == "a lake"


# a server without the SDK, whose first line in reply to a call is no UTF-8
RAW_PROGRAM = f"""
import json, os, sys
results = {{
    "initialize": {START!r},
    "tools/list": {{"tools": [{{"name": "tool", "inputSchema": {{"type": "object"}}}}]}},
    "tools/call": {{"content": [{{"type": "text", "text": "a lake"}}]}},
}}
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "tools/call":
        os.write(1, b"\\xff\\xfe\\n")
    if "id" in request:
        reply = {{"result": results[request["method"]]}} if request["method"] in results else {{
            "error": {{"code": -32601, "message": "no"}}
        }}
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], **reply}}), flush=True)
"""


def test_a_line_of_a_program_that_is_no_utf_8_is_passed_over():
    address = shlex.join((sys.executable, "-I", "-S", "-c", RAW_PROGRAM))
    (tool,) = McpServer(address, call_time_limit=20.0).tool_specs()
    assert [tool.function(), tool.function()] == ["a lake", "a lake"]
    connection_of(address).close()


def test_a_program_that_ends_with_bytes_that_are_no_utf_8_is_one_error():
    code = "import os; os.write(2, b'\\xff broken\\n'); os._exit(1)"
    with pytest.raises(ConfigError, match=r"does not start: .* \ufffd broken$"):
        McpServer(shlex.join((sys.executable, "-I", "-S", "-c", code))).check()


def test_a_program_whose_first_line_is_beyond_the_limit_does_not_start():
    address = shlex.join((sys.executable, "-c", f"import os; os.write(1, b' ' * {LIMIT + 1})"))
    with pytest.raises(ConfigError, match=r"does not start: .*reply is too large: at most 16,"):
        McpServer(address).check()
