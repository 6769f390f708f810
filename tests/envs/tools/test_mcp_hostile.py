"""An MCP server at a URL that answers as no SDK would: patterns that hang, broken replies."""

import json

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from grupo.envs.tools import McpServer
from grupo.envs.tools.mcp import connection_of
from grupo.envs.tools.mcp_connection import McpToolError
from grupo.util import reply_limit
from grupo.util.limits import REPLY_SIZE, Limit
from tests.helpers.http_serving import serving

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
