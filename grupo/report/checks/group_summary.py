"""A group as the journal holds it, without its texts."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from grupo.report.read_run import Record

# What a line of the journal must have to be counted; it may have more, and once had less
REQUIRED_FIELDS = ("step", "task", "text", "reward", "parts", "failed")
ANSWER_MARKER = "####"  # what solutions put before their answer


@dataclass(frozen=True)
class GroupSummary:
    """What the rollouts of a group earned, and how many texts they are.

    Rollouts count from 0 in the order of the journal.
    """

    step: int
    rewards: tuple[float, ...]  # of those that were judged
    distinct_texts: int = 0  # different ones
    num_rollouts: int = 0
    errors: tuple[str, ...] = ()  # why rollouts could not be judged
    fallback_count: int = 0  # rollouts that failed and were given a reward all the same
    task: str = ""
    scored_rollouts: tuple[int, ...] = ()  # those that were judged, as `rewards` counts them
    lengths: tuple[float, ...] = ()  # of those that were judged
    advantages: tuple[float, ...] = ()  # of those that were judged; none if one was not learned
    trained_rollouts: tuple[int, ...] = ()  # rollouts that were learned from
    truncated_rollouts: tuple[int, ...] = ()  # rollouts that ended at their limit
    nan_rollouts: tuple[int, ...] = ()  # rollouts whose reward is no number, and that did not fail
    answer_in_prompt: bool = False  # does the prompt hold the answer?
    other_answer_in_prompt: bool = False  # does it hold the answer of the task before?


def summarize_groups(records: Iterable[Record]) -> Iterator[GroupSummary]:
    """The groups of a journal one by one, none of its texts kept."""
    before = ""
    for (step, task), rollouts in groupby(records, key=lambda r: (r["step"], r["task"])):
        found = list(rollouts)
        prompt, answer = str(found[0].get("prompt", "")), str(found[0].get("answer", ""))
        yield _summarize_group(
            step, task, found, (contains_answer(prompt, answer), contains_answer(prompt, before))
        )
        before = answer or before


def contains_answer(text: str, answer: str) -> bool:
    """Is the answer a word of the text, or several?

    >>> contains_answer("2 + 2 = 4?", "4"), contains_answer("2 + 2 = 14", "4"), contains_answer("2 + 2 =", "as we see #### 2")
    (True, False, True)
    """
    said = answer.rpartition(ANSWER_MARKER)[2].strip()
    return bool(said) and re.search(rf"(?<!\w){re.escape(said)}(?!\w)", text, re.I) is not None


def _summarize_group(
    step: int, task: str, found: Sequence[Record], told: tuple[bool, bool]
) -> GroupSummary:
    def among(keep: Callable[[Record], object]) -> tuple[int, ...]:
        return tuple(number for number, rollout in enumerate(found) if keep(rollout))

    judged = [found[i] for i in among(_is_scored)]
    advantages = [r.get("advantage") for r in judged]
    return GroupSummary(
        step,
        tuple(float(r["reward"]) for r in judged),
        len({_text_key(i, r) for i, r in enumerate(found)}),
        len(found),
        tuple(r["failed"] for r in found if r["failed"]),
        sum(float(r["parts"].get("failed", 0.0)) > 0 for r in judged),
        task,
        among(_is_scored),
        tuple(float(r.get("length", 0)) for r in judged),
        () if None in advantages else tuple(float(a or 0) for a in advantages),
        among(lambda r: r.get("advantage") is not None),
        among(lambda r: r.get("truncated")),
        among(lambda r: not r["failed"] and not _is_scored(r)),
        *told,
    )


def _text_key(number: int, rollout: Record) -> str | int:
    """Its text; of what was made without one, a picture say, none is taken for another."""
    return number if not rollout["text"] and rollout.get("length", 0) > 1 else rollout["text"]


def _is_scored(rollout: Record) -> bool:
    return not rollout["failed"] and not math.isnan(float(rollout["reward"]))
