"""Texts of a policy that made patterns backtrack are read in linear time, with the same result."""

import random
import re
import time

import pytest

from grupo.core.extract_answer import answer_after_thoughts, is_thoughts_then_answer
from grupo.core.types import Response, Rollout, Task
from grupo.envs.code_tests import last_code_block
from grupo.envs.tools import Block, BlockTools
from grupo.rewards import TagFormat
from grupo.rewards.block_answer import is_pure
from grupo.rewards.judges.parsers import JSONField, ReplyError
from grupo.rewards.math_text import strip_delimiters
from grupo.rewards.segmentation_prompt import parse_box_and_points
from grupo.rewards.structured_answers import last_json_block
from grupo.rewards.time_spans import FORMAT
from grupo.rollouts.samplers.self_hint import parse_hint
from grupo.rollouts.samplers.thought_dropout import without_thoughts
from grupo.tasks.renderers import SvgRenderer

SIZE = 200_000  # characters; the patterns of before took minutes
SECONDS = 10.0  # a second where the machine is not busy


def blocks(text):
    session = BlockTools((Block("code", str),))()
    return session.step(text).observation


def tag_format(text, **fields):
    rollout = Rollout((("?", Response((), (), text=text)),))
    return TagFormat(**fields).score(Task("k", "?"), rollout)


def judged(text):
    with pytest.raises(ReplyError):
        JSONField("score", 0, 1)(text)


@pytest.mark.parametrize(
    ("read", "unit", "end"),
    [
        (lambda text: is_pure(text, ["think", "search"]), "<think>", ""),
        (lambda text: is_pure(text, ["think"]), "<think></think>", ""),
        (lambda text: is_pure(text, ["think"]), "<answer><think>", "</answer>"),
        (without_thoughts, "<think>", ""),
        (parse_hint, "<hint>", ""),
        (blocks, "<code>", ""),
        (blocks, "<code></code> ", "x"),
        (blocks, " ", "</code>x"),
        (is_thoughts_then_answer, "<think></think><answer>", ""),
        (is_thoughts_then_answer, "</think> <answer", "</answer>"),
        (answer_after_thoughts, "<think></think><answer>", ""),
        (parse_box_and_points, "{", ""),
        (parse_box_and_points, "{}", "{"),
        (strip_delimiters, r"\boxed{", "}" * (SIZE // 7)),
        (strip_delimiters, ". ", ""),
        (last_json_block, " ", ""),
        (lambda text: last_json_block("```" + text), " ", ""),
        (last_code_block, "```python\n", ""),
        (judged, "```json\n", "```"),
        (tag_format, "<think>", ""),
        (tag_format, " ", "<"),
        (lambda text: FORMAT.fullmatch(f'<think></think><answer>{{"start_time":"{text}'), "1", ""),
        (lambda text: SvgRenderer()(f'<svg><rect width="{text[:19_000]}x"/></svg>'), "1", ""),
    ],
)
def test_a_long_text_is_read_in_linear_time(read, unit, end):
    text = unit * (SIZE // len(unit)) + end
    start = time.perf_counter()
    read(text)
    assert time.perf_counter() - start < SECONDS


PIECES = (
    "<think>", "</think>", "<answer>", "</answer>", "<code>", "</code>", "<hint>", "</HINT>", "a",
    " ", "\n", "<response>",
)  # fmt: skip


def random_texts(count=4000):
    rng = random.Random(0)
    return ["".join(rng.choices(PIECES, k=rng.randrange(9))) for _ in range(count)]


def pure_by_pattern(text):
    names = "think|code|answer"
    pieces = re.split(rf"(?s)<({names})>(.*?)</\1>", text)
    between, tags, contents = pieces[::3], pieces[1::3], pieces[2::3]
    nested = any(re.search(rf"</?(?:{names}|response)>", content) for content in contents)
    is_last = tags[-1:] == ["answer"] and tags.count("answer") == 1
    return is_last and not nested and not "".join(between).strip()


def format_by_pattern(text, may_be_empty):
    names = "think|answer"
    rest = rf"(?:(?!</?(?:{names})>).)*"
    filled = rf"\s*(?!</?(?:{names})>)\S{rest}"
    think = rest if may_be_empty else filled
    pattern = rf"(?s)\s*<think>{think}</think>\s*<answer>{filled}</answer>\s*"
    return float(re.fullmatch(pattern, text) is not None)


def call_by_pattern(text):
    call = re.search(r"<code>(?P<call>.*?)</code>\s*\Z", text)
    return f"<response>{call['call'].strip() or '(nothing)'}</response>" if call else ""


def test_results_are_those_of_the_patterns():
    whole = re.compile(r"(?s)<think>.*?</think>\s*<answer>.*?</answer>")
    thoughts, hint = re.compile(r"(?s)<think>.*?</think>"), re.compile(r"(?si)<hint>(.*?)</hint>")
    for text in random_texts():
        assert is_pure(text, ["think", "code"]) == pure_by_pattern(text), text
        assert tag_format(text) == format_by_pattern(text, False), text
        assert tag_format(text, may_be_empty=("think",)) == format_by_pattern(text, True), text
        assert blocks(text) == call_by_pattern(text), text
        assert is_thoughts_then_answer(text) == (whole.fullmatch(text) is not None), text
        assert without_thoughts(text) == thoughts.sub("<think>\n\n</think>", text, count=1), text
        found = hint.search(text)
        assert parse_hint(text) == (found[1].strip() if found else ""), text
