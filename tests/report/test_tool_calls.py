"""Where in a rollout's parts tools are called, with what, and what answers them."""

import json

import pytest

from grupo.report.html.tool_calls import with_calls
from tests.helpers.written_runs import action

ADD = '<tool_call>{"name": "add", "arguments": {"a": 2, "why": "so"}}</tool_call>'
TOLD = {"name": "add", "arguments": [["a", "2"], ["why", "so"]]}


def calls(*parts: str) -> list[dict]:
    """Of one action of these parts."""
    (found,) = with_calls([action(parts)])
    return found.get("calls", [])


def test_a_call_is_found_by_the_parts_it_was_written_with():
    name, rest = ADD[:7], ADD[7:]
    assert calls("I ", "add. ", name, rest, "!") == [{"parts": [2, 4], "said": [TOLD]}]


def test_a_part_that_begins_before_a_call_or_ends_behind_it_is_part_of_it():
    assert calls("I", f" add {ADD[:9]}", f"{ADD[9:]}.", "!") == [{"parts": [1, 3], "said": [TOLD]}]


def test_calls_that_share_a_part_are_told_together():
    assert calls(ADD, ADD) == [{"parts": [0, 1], "said": [TOLD]}, {"parts": [1, 2], "said": [TOLD]}]
    assert calls(f"{ADD}{ADD}") == [{"parts": [0, 1], "said": [TOLD, TOLD]}]
    assert calls(ADD[:5], f"{ADD[5:]} {ADD[:5]}", ADD[5:]) == [
        {"parts": [0, 3], "said": [TOLD, TOLD]}
    ]


def test_a_call_that_goes_on_in_the_next_action_of_its_turn_is_one_call():
    one, two = with_calls([action(["So ", ADD[:9]]), action([ADD[9:20], ADD[20:], "!"])])
    assert one["calls"] == [{"parts": [1, 2], "said": [TOLD]}]
    assert two["calls"] == [{"parts": [0, 2], "said": []}]


def test_a_call_ends_with_its_turn():
    one, two = with_calls([action([ADD[:20]]), action([ADD[20:]], world="what?")])
    assert one["calls"][0]["said"] == [{"wrong": "a call ends with </tool_call>"}]
    assert "calls" not in two


def test_what_the_world_says_to_calls_is_their_answer():
    actions = [action([f"{ADD}{ADD}"]), action(["so 5"], world="5\n5"), action(["?"], world="Go!")]
    assert [one.get("answers") for one in with_calls(actions)] == [None, 2, None]


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("{", {"wrong": "not JSON"}),
        ("[1]", {"wrong": "Allowed"}),
        ('{"name": "f"}', {"name": "f", "arguments": []}),
        ('{"name": "f", "arguments": [1]}', {"name": "f", "arguments": [["", "[1]"]]}),
    ],
)
def test_a_call_is_read_as_the_world_of_tools_reads_it(inside, said):
    (found,) = calls(f"<tool_call>{inside}</tool_call>")[0]["said"]
    assert set(found) == set(said)
    if "wrong" in said:
        assert found["wrong"].startswith(said["wrong"])
    else:
        assert found == said


@pytest.mark.parametrize("value", ["NaN", "1e999", "[" * 990 + "]" * 990, '"\\ud800"'])
def test_whatever_is_handed_to_a_tool_a_browser_can_read_it(value):
    found = calls(f'<tool_call>{{"name": "f", "arguments": {{"x": {value}}}}}</tool_call>')
    json.dumps(found, allow_nan=False)
    assert all(
        isinstance(text, str) for c in found[0]["said"] for _, text in c.get("arguments", [])
    )


def test_a_rollout_without_calls_is_left_as_it_is():
    actions = [action(["four"]), action(["five"], world="no")]
    assert with_calls(actions) == actions
