"""MCP servers that answer as no SDK would: patterns that hang, broken and endless replies."""

import json
import re
import shlex
import sys

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from grupo.envs.tools import McpServer
from grupo.envs.tools.mcp import connection_of
from grupo.envs.tools.mcp_connection import McpToolError
from grupo.util import reply_limit
from grupo.util.errors import ConfigError
from grupo.util.limits import REPLY_SIZE, Limit
from tests.helpers.http_serving import serving
from tests.helpers.processes import is_running, wait_until

TOKEN = "tok-4fT9qLz81xVbWm0RkE"
START = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
HANGS = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}


def answering(tool, reply):
    """The application of a server with one tool, whose calls get the bytes of `reply(id)`."""
    listed = {"name": "tool", "inputSchema": {"type": "object"}, **tool}
    results = {"initialize": START, "tools/list": {"tools": [listed]}}

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


@pytest.mark.parametrize("address", [command(LIMIT + 1, 1, b"\n"), command(LIMIT // 8, 10**6, b"")])
def test_a_line_of_a_program_beyond_the_limit_is_an_error_and_ends_the_program(address, tmp_path):
    (tool,) = McpServer(address, call_time_limit=60.0).tool_specs()
    message = f"the reply is too large: {REPLY_SIZE.allowed}. The server was ended"
    with pytest.raises(McpToolError, match=re.escape(message)):
        tool.function(pid_file=str(tmp_path / "pid"))
    process = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(process), 20)
    connection_of(address).close()


def test_a_line_of_a_program_up_to_the_limit_is_read(tmp_path):
    (tool,) = McpServer(command(LIMIT, 1, b"\n"), call_time_limit=60.0).tool_specs()
    assert tool.function(pid_file=str(tmp_path / "pid")) == "a lake"


def test_a_program_whose_first_line_is_beyond_the_limit_does_not_start():
    address = shlex.join((sys.executable, "-c", f"import os; os.write(1, b' ' * {LIMIT + 1})"))
    with pytest.raises(ConfigError, match=r"does not start: .*reply is too large: at most 16,"):
        McpServer(address).check()
