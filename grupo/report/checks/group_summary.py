"""Summaries of groups, read from the journal of rollouts; the texts are dropped."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from grupo.report.read_run import Record

# the fields that a line of the journal needs for the checks; older versions wrote fewer
REQUIRED_FIELDS = ("step", "task", "text", "reward", "reward_terms", "error")
ANSWER_MARKER = "####"  # GSM8K puts it before the final answer


@dataclass(frozen=True)
class GroupSummary:
    """The rewards, lengths and defects of a group; rollouts are indexed from 0 in journal order.

    Args:
        step: the step of the group.
        rewards: of the scored rollouts.
        distinct_texts: number of different texts.
        num_rollouts: number of rollouts.
        errors: the messages of rollouts that could not be scored.
        fallback_count: rollouts that failed and got the reward of `FallbackReward`.
        task: the task's key.
        scored_rollouts: the indices that `rewards`, `lengths` and `advantages` belong to.
        lengths: of the scored rollouts, in actions.
        advantages: of the scored rollouts; empty if one of them was not trained on.
        trained_rollouts: indices of the rollouts that were trained on.
        truncated_rollouts: indices of the rollouts that ended at the length limit.
        nan_rollouts: indices of the rollouts with a NaN reward and no error.
        nonfinite_advantages: indices of the rollouts with a NaN or infinite advantage.
        answer_in_prompt: the prompt contains the reference answer.
        other_answer_in_prompt: the prompt contains the reference answer of the previous task.
    """

    step: int
    rewards: tuple[float, ...]
    distinct_texts: int = 0
    num_rollouts: int = 0
    errors: tuple[str, ...] = ()
    fallback_count: int = 0
    task: str = ""
    scored_rollouts: tuple[int, ...] = ()
    lengths: tuple[float, ...] = ()
    advantages: tuple[float, ...] = ()
    trained_rollouts: tuple[int, ...] = ()
    truncated_rollouts: tuple[int, ...] = ()
    nan_rollouts: tuple[int, ...] = ()
    nonfinite_advantages: tuple[int, ...] = ()
    answer_in_prompt: bool = False
    other_answer_in_prompt: bool = False


def summarize_groups(records: Iterable[Record]) -> Iterator[GroupSummary]:
    """Summaries of the groups of a journal, one by one."""
    previous_answer = ""
    for (step, task), members in groupby(records, key=lambda r: (r["step"], r["task"])):
        rollouts = list(members)
        prompt = str(rollouts[0].get("prompt", ""))
        answer = str(rollouts[0].get("reference_answer", ""))
        leaks = contains_answer(prompt, answer), contains_answer(prompt, previous_answer)
        yield _summarize_group(step, task, rollouts, leaks)
        previous_answer = answer or previous_answer


def contains_answer(text: str, answer: str) -> bool:
    """True if the final answer occurs in the text as a whole word or several.

    >>> contains_answer("2 + 2 = 4?", "4"), contains_answer("2 + 2 = 14", "4")
    (True, False)
    >>> contains_answer("2 + 2 =", "as we see #### 2")
    True
    """
    final = answer.rpartition(ANSWER_MARKER)[2].strip()
    return bool(final) and re.search(rf"(?<!\w){re.escape(final)}(?!\w)", text, re.I) is not None


def _summarize_group(
    step: int, task: str, rollouts: Sequence[Record], leaks: tuple[bool, bool]
) -> GroupSummary:
    def indices(predicate: Callable[[Record], object]) -> tuple[int, ...]:
        return tuple(i for i, rollout in enumerate(rollouts) if predicate(rollout))

    scored = [rollouts[i] for i in indices(_is_scored)]
    advantages = [r.get("advantage") for r in scored]
    return GroupSummary(
        step=step,
        rewards=tuple(float(r["reward"]) for r in scored),
        distinct_texts=len({_text_key(i, r) for i, r in enumerate(rollouts)}),
        num_rollouts=len(rollouts),
        errors=tuple(r["error"] for r in rollouts if r["error"]),
        fallback_count=sum(float(r["reward_terms"].get("failed", 0.0)) > 0 for r in scored),
        task=task,
        scored_rollouts=indices(_is_scored),
        lengths=tuple(float(r.get("length", 0)) for r in scored),
        advantages=() if None in advantages else tuple(float(a or 0) for a in advantages),
        trained_rollouts=indices(lambda r: r.get("advantage") is not None),
        truncated_rollouts=indices(lambda r: r.get("truncated")),
        nan_rollouts=indices(lambda r: not r["error"] and not _is_scored(r)),
        nonfinite_advantages=indices(lambda r: not math.isfinite(float(r.get("advantage") or 0))),
        answer_in_prompt=leaks[0],
        other_answer_in_prompt=leaks[1],
    )


def _text_key(index: int, rollout: Record) -> str | int:
    """The text; the index for a rollout without text, such as an image, which counts as unique."""
    has_no_text = not rollout["text"] and rollout.get("length", 0) > 1
    return index if has_no_text else rollout["text"]


def _is_scored(rollout: Record) -> bool:
    return not rollout["error"] and not math.isnan(float(rollout["reward"]))
