"""Marks of the answer's tokens, and the length of the first answer; items are letters."""

import asyncio

import pytest

from grupo.rollouts.samplers import GroupSampler, WithAnswerSpan, WithFirstAnswerLength
from tests.helpers.scripted_actor import END, TASK, Once, Script


def writer(text):
    """An actor that writes a text."""
    return Script(lambda context, key: (text + END)[len(context) - len(TASK.prompt)], [])


def sample(sampler, text):
    return asyncio.run(sampler(TASK, Once(), writer(text))).rollouts[0]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("a[bc]d", "bc"),
        ("[b][c]", "c"),  # the last one
        ("a[bc", "bc."),  # to the end of the text
        ("abc]", ""),
        ("a[]", ""),
    ],
)
def test_the_letters_of_the_answer_are_marked(text, marked):
    rollout = sample(WithAnswerSpan(GroupSampler(1), "[", "]"), text)
    marks = rollout.step_values["answer"]
    assert len(marks) == rollout.length
    assert "".join(x for x, mark in zip(text + END, marks, strict=True) if mark) == marked


@pytest.mark.parametrize(("text", "length"), [("a[b]cd[e]", 4), ("a[b]", 0), ("ab", 0)])
def test_the_first_answer_is_measured_if_a_second_one_follows(text, length):
    rollout = sample(WithFirstAnswerLength(GroupSampler(1), "]"), text)
    assert rollout.reward_terms["first_length"] == length


def test_group_sizes_are_those_of_the_inner_sampler():
    assert WithAnswerSpan(GroupSampler(3)).group_size == 3
    assert WithFirstAnswerLength(GroupSampler(3)).group_size == 3
