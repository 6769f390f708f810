"""Replies of judges, of MCP servers and of servers of OpenEnv."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from grupo.core.types import Task
from grupo.envs.games.invalid_actions import RepeatObservation
from grupo.envs.openenv.session import OpenEnvSession
from grupo.envs.openenv.text import action_by_schema, describe_actions, render_fields
from grupo.envs.openenv.validate import checked_schema
from grupo.envs.tools import McpServer, Toolbox, mcp
from grupo.rewards.judges.base import JudgeError
from grupo.rewards.judges.parsers import JSONField, LetterChoice, NumberAfter, YesNo
from grupo.rewards.judges.retries import retry_after
from grupo.rewards.judges.scores import parse_reply
from grupo.rewards.judges.session import parse_completion
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json
from tests.helpers.fuzzing.target import Target, mutated
from tests.helpers.fuzzing.values import changed, json_values

REPLY = {
    "id": "a",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 3},
}
PARSERS = (
    NumberAfter("Score:", 1, 5),
    JSONField("score", 0, 10),
    YesNo("Correct:"),
    LetterChoice("Better:", "ABC", (1.0, 0.0, 0.5)),
)
CONTENT_PIECES = (
    *(
        "Score: 3",
        "Score:",
        "\n",
        "**Score:** 4/5",
        "/5",
        "<think>",
        "</think>",
        "9" * 400,
        "1e999",
    ),
    *(
        '{"score": 5}',
        '{"score": NaN}',
        '"score"',
        "```json",
        "```",
        "Correct: yes.",
        "Better: (B)",
    ),
    *(
        "\u0663",
        "-",
        ".",
        "{",
        "[" * 200,
        "\ud800",
        "\x1b[2J",
        "\0",
        " " * 2000,
        "*" * 2000,
        "#" * 500,
    ),
)
CONTENTS = st.lists(st.sampled_from(CONTENT_PIECES) | st.text(max_size=4), max_size=6).map("".join)
COUNTS = st.sampled_from((10**400, -1, 1.5, "7", "9" * 5000, None, True, [], {}, 1e308, 2**63))
HEADERS = st.dictionaries(
    st.sampled_from(("retry-after", "retry-after-ms")),
    st.sampled_from(("1", "1e999", "nan", "-1", "", "Wed, 21 Oct 2015 07:28:00 GMT", "9" * 400))
    | st.sampled_from(
        ("Fri, 31 Dec 9999 23:59:59 -1200", "Mon, 1 Jan 0001 00:00:00 +1200", "1 1 1")
    )
    | st.text(max_size=20),
)


def _reply(parts: tuple[Any, Any]) -> Any:
    content, count = parts
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": count}}


def _read_judge(reply: tuple[bytes, Mapping[str, str]]) -> object:
    """The score in a response, as a session and a judge read it; and its delay."""
    content, headers = reply
    delay = retry_after(headers)
    assert delay is None or 0 <= delay < float("inf")
    parsed = parse_completion(parse_json(content.decode(errors="replace")))
    float(parsed.prompt_tokens + parsed.completion_tokens)
    scores = [parse_reply(parse, parsed) for parse in PARSERS]
    assert all(isinstance(x, JudgeError) or 0 <= x <= 1 for x in scores)
    return scores


def _json(data: Any) -> bytes:
    return json.dumps(data).encode()


JUDGES = Target(
    _read_judge,
    st.tuples(
        changed(REPLY, 10**400).map(_json)
        | st.tuples(CONTENTS, COUNTS | st.just(3)).map(_reply).map(_json)
        | mutated(_json(REPLY))
        | json_values(*REPLY).map(_json),
        HEADERS,
    ),
    (ValueError,),  # a session repeats the request, and then fails with a message
    cases=1200,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "string", "pattern": "^x+$"}},
    "required": ["a"],
    "$defs": {"n": {"type": "integer", "minimum": 0}},
}
_AGAIN = {"allOf": [{"$ref": "#"}, {"$ref": "#/$defs/n"}, {"properties": {"a": {"$ref": "#"}}}] * 2}
DOUBLED = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
SCHEMA_PARTS = (
    *({"$ref": "#"}, {"$ref": "file:///etc/passwd"}, {"$ref": "#/$defs/a"}, {"$id": "http://[::1"}),
    *(_AGAIN, {"$defs": DOUBLED, "$ref": "#/$defs/d0"}, {"pattern": "(a+)+$"}, {"pattern": "("}),
    *({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, {"enum": []}, {"const": "\ud800"}, True, False),
    *({"multipleOf": 1e-300}, {"maxLength": 10**400}, {"$schema": "http://a/b"}, {"type": "a"}),
)
NAMES = st.sampled_from(("add", "", "a b", "{0}", "{tools}", "\x1b[2J", "\ud800", "x" * 9000))
CALLS = st.lists(
    st.sampled_from(({}, {"a": 1}, {"a": {"a": {"a": 1}}}, [], [1], None, "a", {"b": "x" * 5000}))
    | json_values("a", "b"),
    max_size=3,
)
CONTENT = {"type": "text", "text": "5"}
RESULT = {
    "content": [CONTENT, {"type": "image", "data": "AAAA", "mimeType": "a"}],
    "isError": False,
}


def _use_mcp(example: tuple[str, str, Any, Any, list[Any]]) -> object:
    """Check a server with one tool, describe it to the policy, and call it."""
    from mcp.types import CallToolResult, Tool  # an optional dependency
    from pydantic import ValidationError

    name, description, schema, result, calls = example
    try:
        tool = Tool.model_validate(
            {"name": name, "description": description, "inputSchema": schema}
        )
        answer = CallToolResult.model_validate(result)
    except ValidationError as error:  # the SDK refuses it, which the connection reports
        raise ConfigError("refused by the SDK") from error
    connection = mcp.McpConnection("server", {}, "")
    text = connection._text_of(answer)
    server = SimpleNamespace(list_tools=lambda: [tool], call=lambda *arguments: text)
    with patch.object(mcp, "connection_of", lambda *key: server):
        toolbox = Toolbox((McpServer("server"),))
        toolbox.check()
        session = toolbox()
        session.reset(Task("1", "a"))
        for call in calls:
            body = json.dumps({"name": name, "arguments": call})
            session.step(f"<tool_call>{body}</tool_call>")
    return text


MCP = Target(
    _use_mcp,
    st.tuples(
        NAMES | st.text(max_size=8),
        st.text(max_size=8) | st.just("{tools}"),
        st.just(SCHEMA)
        | st.sampled_from(SCHEMA_PARTS)
        | changed(SCHEMA, *SCHEMA_PARTS)
        | json_values(*SCHEMA).map(lambda value: {"properties": {"a": value}}),
        st.just(RESULT) | changed(RESULT),
        CALLS,
    ),
    cases=900,
)

OBSERVATION = {"observation": {"board": "_X_", "legal": [0, 2]}, "reward": 1.0, "done": False}
ACTIONS = ("", "a", '{"a": 1}', "[1]", "[" * 5000, '{"a": NaN}', "9" * 5000, "null")


class _Server:
    """A connection to a server of OpenEnv that gives the same result to every call."""

    def __init__(self, result: Any) -> None:
        data = result if isinstance(result, dict) else {}
        names = ("observation", "reward", "done")
        self.result = SimpleNamespace(**{name: data.get(name) for name in names})

    def reset(self, arguments: Mapping[str, Any]) -> Any:
        return self.result

    def step(self, action: Mapping[str, Any]) -> Any:
        return self.result

    def close(self) -> None:
        pass


def _use_openenv(example: tuple[Any, Any, str]) -> object:
    """Play a turn of an episode."""
    data, result, action = example
    schema = checked_schema(data)
    session = OpenEnvSession(
        lambda: _Server(result),
        schema,
        render_fields,
        action_by_schema,
        invalid_action=RepeatObservation(),
        introduction=describe_actions(schema),
        token_env="",
    )
    session.reset(Task("1", "a"))
    return session.step(action)


OPENENV = Target(
    _use_openenv,
    st.tuples(
        st.just(SCHEMA) | changed(SCHEMA, *SCHEMA_PARTS) | json_values(*SCHEMA),
        st.just(OBSERVATION) | changed(OBSERVATION) | json_values(*OBSERVATION),
        st.sampled_from(ACTIONS) | st.text(max_size=5),
    ),
    (ConfigError, RuntimeError),  # RuntimeError: of the environment, which fails the rollout
    cases=900,
)
