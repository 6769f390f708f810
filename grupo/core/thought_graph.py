"""Graphs of thoughts: sub-questions of a task with answers, each of which reads earlier ones."""

import re
from collections.abc import Sequence
from typing import NamedTuple

INPUTS = re.compile(r"\[([\d,\s]*)\]")
BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d+[.):])\s+")
MAX_DIGITS = 18  # Python converts no number of thousands of digits


class SubQuestion(NamedTuple):
    """A planned sub-question.

    Args:
        text: The question.
        inputs: Numbers of the earlier thoughts that it reads, from 1, ascending.
    """

    text: str
    inputs: tuple[int, ...]


class Thought(NamedTuple):
    """An answered sub-question.

    Args:
        question: The question, with the thoughts that it reads.
        answer: Its answer.
        nested: The thoughts of the graph that has answered it; () if it was answered at once.
    """

    question: SubQuestion
    answer: str
    nested: "tuple[Thought, ...]" = ()


class Plan(NamedTuple):
    """The sub-questions of a layer.

    Args:
        questions: The sub-questions.
        unknown_inputs: Number of inputs that are no earlier thoughts, and were left out.
    """

    questions: tuple[SubQuestion, ...]
    unknown_inputs: int = 0


def parse_plan(reply: str, num_thoughts: int, limit: int) -> Plan:
    """The questions of a reply, one a line; none if it begins with "done".

    Numbers in brackets are the earlier thoughts that a question reads; a question without brackets
    reads all of them. As only earlier thoughts are read, the graph has no circle.

    Args:
        reply: The reply.
        num_thoughts: Number of thoughts so far.
        limit: Largest number of questions; further lines are left out.

    >>> parse_plan("1. [1, 5] How old?\\n- Where?", 2, 3).questions
    (SubQuestion(text='How old?', inputs=(1,)), SubQuestion(text='Where?', inputs=(1, 2)))
    >>> parse_plan("Done.", 2, 3)
    Plan(questions=(), unknown_inputs=0)
    """
    if reply.strip().lower().startswith("done"):
        return Plan(())
    questions: list[SubQuestion] = []
    unknown = 0
    for line in reply.splitlines():
        brackets = INPUTS.search(line)
        text = BULLET.sub("", INPUTS.sub("", BULLET.sub("", line))).strip()
        if not text or len(questions) == limit or any(text == q.text for q in questions):
            continue
        named = _numbers(brackets[1]) if brackets else None
        earlier = range(1, num_thoughts + 1)
        inputs = [i for i in earlier if named is None or i in named]
        unknown += len(named or ()) - len(inputs) if brackets else 0
        questions.append(SubQuestion(text, tuple(inputs)))
    return Plan(tuple(questions), unknown)


def _numbers(text: str) -> set[int]:
    """The numbers in a text; of very long ones the first digits, which are unknown as well."""
    return {int(digits[:MAX_DIGITS]) for digits in re.findall(r"\d+", text)}


def listed_lines(reply: str) -> list[str]:
    """The different lines of a reply that are not empty, without bullets and numbers before them.

    >>> listed_lines("1. one\\n\\n- two\\n(3) one")
    ['one', 'two']
    """
    lines = (BULLET.sub("", line).strip() for line in reply.splitlines())
    return list(dict.fromkeys(line for line in lines if line))


def thoughts_text(thoughts: Sequence[Thought], numbers: Sequence[int] | None = None) -> str:
    """The thoughts with their numbers and answers, one a line.

    Args:
        thoughts: The thoughts of a graph.
        numbers: Numbers of those in the text, from 1; None for all.

    >>> thoughts_text([Thought(SubQuestion("How old?", ()), "Two.")])
    '1. How old? Two.'
    """
    shown = range(1, len(thoughts) + 1) if numbers is None else numbers
    lines = (f"{i}. {thoughts[i - 1].question.text} {thoughts[i - 1].answer}" for i in shown)
    return "\n".join(lines)
