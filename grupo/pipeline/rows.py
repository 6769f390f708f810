"""Rows of a `CollectStage`: made of the rollouts of a group, by their rewards or by a strategy.

`answers` and `answers_against_rejected` read texts alone, neither rewards nor reference answers: of
a turn strategy's answers, the strategy is the only judge.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from grupo.core.protocols import implemented_in
from grupo.core.types import Rollout

__all__ = [
    "answers",
    "answers_against_rejected",
    "best_against_worst",
    "best_against_worst_in_context",
    "solved",
]
Row = Mapping[str, Any]  # the columns of one task in the written file, by name
Solves = Callable[[Rollout], bool]


@implemented_in("grupo.pipeline.rows")
class RowsOfGroup(Protocol):
    """Makes rows of the scored rollouts of a group."""

    def __call__(self, rollouts: Sequence[Rollout], solves: Solves, /) -> Sequence[Row]:
        """The rows.

        Args:
            rollouts: The scored rollouts of a group.
            solves: Returns whether a rollout solves its task.
        """
        ...


def best_against_worst(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[Row]:
    """One row: the rollout with the highest reward as `chosen`, the lowest as `rejected`.

    Of several rollouts with the same reward, the first one is taken. Rollouts without text, or with
    white space only, are left out. There is no row if all rewards are equal, or if the best and the
    worst rollout have the same text.

    Args:
        rollouts: The scored rollouts of a group.
        solves: Not used.

    >>> from grupo.core.types import Response
    >>> turns = [(("2 + 2", Response((1,), (0.0,), text=text)),) for text in ("5", "4")]
    >>> group = [Rollout(turns[0], reward=0.0), Rollout(turns[1], reward=1.0)]
    >>> [(row["chosen"], row["rejected"]) for row in best_against_worst(group, bool)]
    [('4', '5')]
    """
    rollouts = [rollout for rollout in rollouts if rollout.text.strip()]
    if not rollouts:
        return []
    best = max(rollouts, key=lambda rollout: rollout.reward)
    worst = min(rollouts, key=lambda rollout: rollout.reward)
    if best.reward == worst.reward or best.text == worst.text:
        return []
    rewards = {"chosen_reward": best.reward, "rejected_reward": worst.reward}
    return [{"chosen": best.text, "rejected": worst.text, **rewards}]


def best_against_worst_in_context(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[Row]:
    """As `best_against_worst`, with the prompt of the rollouts in place of the task's prompt.

    Use this function if the rollouts of a group share a prompt that is not the task's prompt. An
    example is a sampler that generates several reviews of one answer.

    Args:
        rollouts: The scored rollouts of a group, which have the same prompt.
        solves: Not used.
    """
    rows = best_against_worst(rollouts, solves)
    if not rows:
        return []
    prompt = next(rollout.turns[0][0] for rollout in rollouts if rollout.turns)
    return [{**row, "prompt": prompt if isinstance(prompt, str) else list(prompt)} for row in rows]


def solved(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[Row]:
    """A row for each rollout that solves the task, with its text as `completion`.

    Rollouts with the same text have one row.

    Args:
        rollouts: The scored rollouts of a group.
        solves: Returns whether a rollout solves its task.
    """
    texts = dict.fromkeys(rollout.text for rollout in rollouts if solves(rollout))
    return [{"completion": text} for text in texts]


def answers(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[Row]:
    """A row for each different answer, right or wrong, with its text as `completion`.

    Answers without text, or with white space only, are left out.

    Args:
        rollouts: The rollouts of a group.
        solves: Not used.

    >>> from grupo.core.types import Response
    >>> responses = [Response((1,), (0.0,), text=text) for text in ("4", "4", "")]
    >>> answers([Rollout((("2 + 2", response),)) for response in responses], bool)
    [{'completion': '4'}]
    """
    texts = dict.fromkeys(rollout.text for rollout in rollouts)
    return [{"completion": text} for text in texts if text.strip()]


def answers_against_rejected(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[Row]:
    """A row for each answer of the turn strategy and each different one that it rejected.

    The answer is `chosen`, the other one `rejected`. `Vote` rejects the attempts with another
    extracted answer, `BestOf` all other attempts, `Revised` the answers before the last revision. A
    strategy of your own calls `grupo.core.private_turns.reject_answers`. Rollouts of several turns
    have no rejected answers. Texts with white space only are left out.

    Args:
        rollouts: The rollouts of a group, each with its rejected answers.
        solves: Not used.

    >>> from grupo.core.types import Response
    >>> turns = (("2 + 2", Response((1,), (0.0,), text="4")),)
    >>> answers_against_rejected([Rollout(turns, rejected=("5", "4", "5", " "))], bool)
    [{'chosen': '4', 'rejected': '5'}]
    """
    pairs = ((rollout.text, other) for rollout in rollouts for other in rollout.rejected)
    return [
        {"chosen": chosen, "rejected": rejected}
        for chosen, rejected in dict.fromkeys(pairs)
        if chosen.strip() and rejected.strip() and chosen != rejected
    ]
