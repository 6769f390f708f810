"""Formats of tool calls: which calls a text has, where they are, and why one cannot be read."""

import json
import time
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grupo.core.call_markers import CALL_MARKERS, DEEPSEEK, kept_markers
from grupo.envs.tools.formats import FORMATS, FormatName, format_of_template
from grupo.envs.tools.formats.text_calls import JSON_TYPES
from tests.helpers.tool_call_texts import MALFORMED, with_thoughts, write_call, write_calls

NAMES = sorted(FORMATS)
AWKWARD = {
    "text": 'He said "it\'s" [1, 2]; {x} ``` </tool_call',
    "lines": "a\nb\\n\tc",
    "script": "čeština 漢字 🙂",
    "number": -2.5,
    "list": [1, {"b": None}, True],
}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab'\"\\[({}) \n🙂", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab "), inner, max_size=3),
    max_leaves=6,
)


def parse(name, text):
    return list(FORMATS[name].parse(text))


def calls(name, text, *wanted):
    """Name and arguments of every call; fails for one that cannot be read.

    Formats without types get those of the wanted arguments, as a tool's schema would name them.
    """
    found = parse(name, text)
    assert [call.error for call in found] == [""] * len(found)
    schemas = [schema_of(arguments) for _, arguments in wanted] or [{}] * len(found)
    convert = FORMATS[name].convert
    pairs = zip(found, schemas, strict=True)
    return [(call.name, convert(call.arguments, schema)) for call, schema in pairs]


def schema_of(arguments):
    properties = {key: {"type": JSON_TYPES[type(value)]} for key, value in arguments.items()}
    return {"function": {"parameters": {"type": "object", "properties": properties}}}


def test_the_names_of_formats_are_those_that_a_toolbox_accepts():
    assert set(typing.get_args(FormatName)) == {"auto", *FORMATS}


@pytest.mark.parametrize("name", NAMES)
def test_a_call_is_read_with_its_name_and_arguments(name):
    text = write_call(name, "add", a=2, b="so")
    wanted = ("add", {"a": 2, "b": "so"})
    assert calls(name, text, wanted) == [wanted]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_keep_quotes_brackets_lines_and_scripts(name):
    arguments = {key: value for key, value in AWKWARD.items() if name != "gemma" or key != "text"}
    wanted = ("look", arguments)
    assert calls(name, write_call(name, "look", **arguments), wanted) == [wanted]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "gemma"])
@settings(max_examples=30)
@given(value=JSON_VALUES)
def test_any_json_value_is_read_as_it_was_written(name, value):
    markers = {marker for markers in CALL_MARKERS for marker in markers}
    if not any(marker in json.dumps(value) for marker in markers):
        wanted = ("f", {"x": value})
        assert calls(name, write_call(name, "f", x=value), wanted) == [wanted]


@pytest.mark.parametrize("name", NAMES)
def test_several_calls_are_read_in_order(name):
    wanted = [("add", {"a": 1}), ("now", {}), ("add", {"a": 2})]
    assert calls(name, write_calls(name, *wanted), *wanted) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_call_may_follow_thoughts(name):
    text = with_thoughts(name, write_call(name, "add", a=1))
    (call,) = parse(name, text)
    assert (call.name, call.error) == ("add", "")
    assert set(call.arguments) == {"a"}


@pytest.mark.parametrize("name", NAMES)
def test_the_span_of_a_call_is_where_it_stands_in_the_text(name):
    text = with_thoughts(name, write_call(name, "add", a=1))
    (call,) = parse(name, text)
    wanted = ("add", {"a": 1})
    assert calls(name, text[call.start : call.end], wanted) == [wanted]
    assert "look" not in text[call.start : call.end]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["", "5", "The answer is 5.", '{"answer": 5}', "[1, 2]", "f(x)"])
def test_an_answer_has_no_calls(name, text):
    assert parse(name, text) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_malformed_call_says_why(name):
    text, reason = MALFORMED[name]
    (call,) = parse(name, text)
    assert call.error.startswith(reason)
    assert text[call.start : call.end]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fragment", ["[", "{", '{"a":', "(", "-", "\\", "```", "'''", "<|"])
def test_a_hundred_thousand_brackets_are_read_in_a_moment(name, fragment):
    opening = write_call(name, "add", a=1).partition("1")[0]
    for text in (fragment * 100_000, opening + fragment * 100_000):
        for call in parse(name, text):
            assert call.error


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("hermes", "<tool_call>[1]</tool_call>", 'Allowed: {"name": ..., "arguments": {...}}'),
        ("hermes", "<tool_call>{}", "a call ends with </tool_call>"),
        ("llama", "<|python_tag|>print(1)", 'Allowed: {"name": ..., "parameters": {...}}'),
        ("llama", '{"type": "function"}', 'Allowed: {"name": ..., "parameters": {...}}'),
        ("mistral", "[TOOL_CALLS]", "Allowed: [TOOL_CALLS]name[ARGS]{...}"),
        ("mistral", "[TOOL_CALLS][]", "the list is empty"),
        ("mistral", "[TOOL_CALLS][1]", 'Allowed: {"name": ..., "arguments": {...}}'),
        ("pythonic", "[add(a=1)", "a list of calls ends with ]"),
        ("pythonic", "[add(a=x)]", "a=x is no literal"),
        ("pythonic", "[add(**{'a': 1})]", "add(**{'a': 1}) has an argument without a name"),
        ("pythonic", "[add(a=1, a=2)]", "add(a=1, a=2) has an argument twice"),
        ("pythonic", "[add(a={1, 2})]", "a={1, 2} is no literal"),
        ("pythonic", "[add(a=1), 3]", "3 is no call"),
        ("gemma", "```tool_code\n```", "there is no call"),
        ("gemma", "```tool_code\nx = add(a=1)\n```", "x = add(a=1) is no call"),
        ("harmony", "<|channel|>commentary to=functions.add<|message|>{", "a call ends with"),
        ("harmony", "<|channel|>commentary to=functions.f<|message|>{<|call|>", "not JSON"),
        ("qwen3_coder", "<tool_call>{}</tool_call>", "Allowed: <function=name><parameter=key>"),
        ("qwen3_coder", "<function=add>", "'' is no argument and no end of a call"),
        ("glm", "<tool_call>", "Allowed: <tool_call>name<arg_key>key</arg_key>"),
        ("glm", '<tool_call>{"name": "add"}</tool_call>', "Allowed: <tool_call>name<arg_key>"),
        ("glm", "<tool_call>add\n", "'' is no argument and no end of a call"),
        ("deepseek", DEEPSEEK[0], f"Allowed: {DEEPSEEK[2]}name{DEEPSEEK[4]}"),
        ("deepseek", f"{DEEPSEEK[2]}add{DEEPSEEK[4]}{{}}", f"a call ends with {DEEPSEEK[3]}"),
        ("phi4_mini", "<|tool_call|>add", 'Allowed: <|tool_call|>[{"name": ..., "arguments"'),
        ("phi4_mini", "<|tool_call|>[1]", 'Allowed: {"name": ..., "arguments": {...}}'),
        ("phi4_mini", "functools[{", "not JSON: Expecting property name"),
        ("functiongemma", "<start_function_call>add{}", "Allowed: <start_function_call>call:name"),
        ("functiongemma", "<start_function_call>call:add{a:1}", "a call ends with <end_function"),
        ("functiongemma", "<start_function_call>call:f{a:b}<end_function_call>", "not JSON: Expec"),
        ("react", "Action: add\nAction Input: a=1\nObservation:", "not JSON"),
    ],
)
def test_the_reason_names_what_is_allowed(name, text, error):
    *_, call = parse(name, text)
    assert call.error.startswith(error)


def test_calls_within_thoughts_are_no_calls():
    inner, outer = write_call("hermes", "add", a=1), write_call("hermes", "add", a=2)
    assert calls("hermes", f"<think>{inner}?</think>{outer}") == [("add", {"a": 2})]
    assert calls("hermes", f"<think>{inner}</think>No.") == []


def test_a_tag_may_hold_a_list_of_calls():
    items = [{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}]
    text = f"<tool_call>{json.dumps(items)}</tool_call>"
    assert calls("hermes", text) == [("add", {"a": 1}), ("now", {})]
    assert calls("hermes", "<tool_call>[]</tool_call>") == []


def test_mistral_writes_a_list_or_a_name_before_each_call():
    old = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "VvvODy9mT"}]'
    new = '[TOOL_CALLS]add[CALL_ID]VvvODy9mT[ARGS]{"a": 1}'
    for text in (old, new):
        (call,) = parse("mistral", text)
        assert (call.name, call.arguments, call.call_id) == ("add", {"a": 1}, "VvvODy9mT")


def test_phi4_mini_may_leave_out_the_closing_token_and_the_brackets():
    one, other = (json.dumps({"name": "add", "arguments": {"a": [n]}}) for n in (1, 2))
    wanted = [("add", {"a": [1]}), ("add", {"a": [2]})]
    for text in (
        f"<|tool_call|>[{one}, {other}]",
        f"<|tool_call|>{one}, {other}<|/tool_call|>",
        f"<|tool_call|>{one}<|/tool_call|><|tool_call|>{other}<|/tool_call|>",
        f"I add. functools[{one}, {other}]",
    ):
        assert calls("phi4_mini", text) == wanted
    assert parse("phi4_mini", "functools.reduce(f, [1]) and functools") == []


def test_llama_may_put_a_token_before_the_call():
    text = f"<|python_tag|>{write_call('llama', 'add', a=1)}"
    assert calls("llama", text) == [("add", {"a": 1})]


def test_gemma_may_print_the_call():
    assert calls("gemma", "```tool_code\nprint(add(a=1))\n```") == [("add", {"a": 1})]


def test_harmony_may_name_the_recipient_before_the_channel():
    text = ' to=functions.add<|channel|>commentary json<|message|>{"a": 1}<|call|>'
    assert calls("harmony", text) == [("add", {"a": 1})]
    assert parse("harmony", "<|channel|>final<|message|>Write to=functions.add.") == []
    assert parse("harmony", text.replace("functions.add", "browser.search")) == []


def test_harmony_has_a_recipient_in_the_header_of_a_message_only():
    call = ' to=functions.add<|message|>{"a": 1}<|call|>'
    thought = "<|channel|>analysis<|message|>I add.<|end|>"
    assert parse("harmony", call) == []  # on no channel
    assert parse("harmony", thought + call) == []  # in no message of its own
    assert calls("harmony", f"{thought}<|start|>assistant{call}") == [("add", {"a": 1})]


def test_what_a_policy_writes_after_its_own_observation_is_no_call():
    action = 'Action: add\nAction Input: {"a": 1}\n'
    assert calls("react", f"{action}Observation: 5\n{action}") == [("add", {"a": 1})]


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ '<|start|>assistant<|channel|>' }}", "harmony"),
        ("{{ '[TOOL_CALLS]' }}", "mistral"),
        ("{{ '<tool_call>\\n' }}", "hermes"),
        ('{"name": name, "parameters": dictionary of argument name and its value}.', "llama"),
        ("[func_name1(params_name1=params_value1), func_name2(params)]", "pythonic"),
        ("<bos><start_of_turn>model", "gemma"),
        ("<tool_call>\\n<function=name>\\n<parameter=key>", "qwen3_coder"),
        ("<tool_call>{name}\\n<arg_key>", "glm"),
        (f"{{{{ '{DEEPSEEK[0]}{DEEPSEEK[2]}' }}}}", "deepseek"),
        ("<start_of_turn>model\\n<start_function_call>call:", "functiongemma"),
        ("{{ '<|tool|>' + message.tools + '<|/tool|>' }}", "phi4_mini"),
        ('formatted as functools[{"name": [function name]}, ...]', "phi4_mini"),
        ("write <|tool_call|> followed by a JSON list of tools", "phi4_mini"),
    ],
)
def test_a_marker_in_the_template_selects_the_format(template, name):
    assert format_of_template(template).name == name


@pytest.mark.parametrize(
    "template",
    ["", "<|im_start|>user", "<seed:tool_call>\n<function=name>"],
)
def test_templates_of_other_formats_select_none(template):
    assert format_of_template(template) is None


def test_texts_keep_the_markers_of_a_family_but_no_others():
    phi = frozenset({"<|end|>", "<|user|>"})
    assert kept_markers(phi) == frozenset()
    assert kept_markers(phi | {"<|channel|>", "<|return|>"}) == {"<|channel|>", "<|end|>"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "malformed"),
    [
        ("mistral", "[TOOL_CALLS]["),
        ("hermes", "<tool_call>{"),
        ("qwen3_coder", "<tool_call>\n<function=add>\n<parameter=a>\n"),
        ("glm", "<tool_call>add\n<arg_key>a</arg_key><arg_value>"),
        ("deepseek", f"{DEEPSEEK[2]}add{DEEPSEEK[4]}{{"),
        ("functiongemma", "<start_function_call>call:add{a:"),
        ("phi4_mini", "<|tool_call|>[{"),
    ],
)
def test_many_malformed_calls_take_linear_time(name, malformed):
    """10^5 of Mistral took 46 seconds of processor time when each was searched from the start."""
    started = time.process_time()
    assert len(list(FORMATS[name].parse(malformed * 100_000))) == 100_000
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("name", "unclosed"),
    [
        ("qwen3_coder", "<function=add><parameter=a>\n1\n</parameter>"),
        ("qwen3_coder", "<function=add>" + "\n" * 1000 + "<parameter=a>"),
        ("glm", "<tool_call>add<arg_key>a</arg_key><arg_value>"),
        ("deepseek", f"{DEEPSEEK[2]}add{DEEPSEEK[4]}{{" + '"a": ['),
        ("functiongemma", "<start_function_call>call:add{a:<escape>,"),
    ],
)
def test_a_malformed_call_of_a_million_characters_takes_linear_time(name, unclosed):
    opening, last = unclosed[:-12], unclosed[-12:]
    started = time.process_time()
    (call,) = parse(name, opening + last * 100_000)
    assert call.error
    assert time.process_time() - started < 10


def test_many_actions_after_a_long_text_do_not_copy_it_for_each():
    number = 3_000
    text = "x" * 20_000_000 + "\n" + "Action:\n" * number
    start = time.process_time()
    calls = list(FORMATS["react"].parse(text))
    assert time.process_time() - start < 5.0  # a tenth of a second; with copies, more than 10
    assert [call.error for call in calls] == ["the line Action Input follows Action"] * number
