"""Tool calls located in the items of a rollout's responses."""

import json

import pytest

from grupo.envs.tools.formats import FORMATS
from grupo.report.html.tool_calls import format_of_recipe, with_calls
from tests.helpers.written_runs import response

ADD = '<tool_call>{"name": "add", "arguments": {"a": 2, "why": "so"}}</tool_call>'
CALL = {"name": "add", "arguments": [["a", "2"], ["why", "so"]]}


def call_spans(*items: str) -> list[dict]:
    """The call spans of one response with these items."""
    (annotated,) = with_calls([response(items)])
    return annotated.get("call_spans", [])


def test_call_span_covers_the_items_of_the_call():
    name, rest = ADD[:7], ADD[7:]
    assert call_spans("I ", "add. ", name, rest, "!") == [{"item_range": [2, 4], "calls": [CALL]}]


def test_call_span_includes_partially_covered_items():
    assert call_spans("I", f" add {ADD[:9]}", f"{ADD[9:]}.", "!") == [
        {"item_range": [1, 3], "calls": [CALL]}
    ]


def test_calls_that_share_an_item_share_a_span():
    assert call_spans(ADD, ADD) == [
        {"item_range": [0, 1], "calls": [CALL]},
        {"item_range": [1, 2], "calls": [CALL]},
    ]
    assert call_spans(f"{ADD}{ADD}") == [{"item_range": [0, 1], "calls": [CALL, CALL]}]
    assert call_spans(ADD[:5], f"{ADD[5:]} {ADD[:5]}", ADD[5:]) == [
        {"item_range": [0, 3], "calls": [CALL, CALL]}
    ]


def test_call_continues_in_the_next_action_of_its_turn():
    one, two = with_calls([response(["So ", ADD[:9]]), response([ADD[9:20], ADD[20:], "!"])])
    assert one["call_spans"] == [{"item_range": [1, 2], "calls": [CALL]}]
    assert two["call_spans"] == [{"item_range": [0, 2], "calls": []}]


def test_call_does_not_continue_in_the_next_turn():
    one, two = with_calls([response([ADD[:20]]), response([ADD[20:]], observation="what?")])
    assert one["call_spans"][0]["calls"] == [{"error": "a call ends with </tool_call>"}]
    assert "call_spans" not in two


def test_observation_answers_the_calls_of_the_previous_turn():
    responses = [
        response([f"{ADD}{ADD}"]),
        response(["so 5"], observation="5\n5"),
        response(["?"], observation="Go!"),
    ]
    assert [one.get("answered_calls") for one in with_calls(responses)] == [None, 2, None]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", {"error": "not JSON"}),
        ("[1]", {"error": "Allowed"}),
        ('{"name": "f"}', {"name": "f", "arguments": []}),
        ('{"name": "f", "arguments": [1]}', {"name": "f", "arguments": [["", "[1]"]]}),
    ],
)
def test_calls_are_parsed_as_in_the_tool_environment(content, expected):
    (call,) = call_spans(f"<tool_call>{content}</tool_call>")[0]["calls"]
    assert set(call) == set(expected)
    if "error" in expected:
        assert call["error"].startswith(expected["error"])
    else:
        assert call == expected


@pytest.mark.parametrize("value", ["NaN", "1e999", "[" * 990 + "]" * 990, '"\\ud800"'])
def test_any_argument_is_valid_strict_json(value):
    spans = call_spans(f'<tool_call>{{"name": "f", "arguments": {{"x": {value}}}}}</tool_call>')
    json.dumps(spans, allow_nan=False)
    assert all(
        isinstance(text, str) for c in spans[0]["calls"] for _, text in c.get("arguments", [])
    )


def test_rollout_without_calls_is_unchanged():
    responses = [response(["four"]), response(["five"], observation="no")]
    assert with_calls(responses) == responses


def test_calls_are_found_in_the_format_of_the_run():
    toolbox = {"component": "grupo.envs.tools.tool_env:Toolbox", "format": "mistral"}
    recipe = {"env": {"component": "grupo.envs.multi_turn:MultiTurn", "env_factory": toolbox}}
    items = ["So ", "[TOOL_CALLS]", "add", "[ARGS]", '{"a": "2"}', "</s>"]
    (annotated,) = with_calls([response(items)], format_of_recipe(recipe))
    call = {"name": "add", "arguments": [["a", "2"]]}
    assert annotated["call_spans"] == [{"item_range": [1, 5], "calls": [call]}]


@pytest.mark.parametrize(
    "toolbox", [{}, {"format": "auto"}, {"format": ["mistral"]}, {"format": "unknown"}]
)
def test_the_format_of_other_recipes_is_that_of_hermes(toolbox):
    data = {"component": "grupo.envs.tools.tool_env:Toolbox", **toolbox}
    assert format_of_recipe({"env": [data]}) == FORMATS["hermes"]
