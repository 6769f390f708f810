"""Rows of a `CollectStage` with a turn strategy: its answers, and those that it rejected.

Both read the texts alone, neither rewards nor reference answers: the strategy is the only judge.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grupo.core.interfaces import Actor, TurnStrategy
from grupo.core.private_turns import record_rejected_answers
from grupo.core.types import Observation, Rollout

Solves = Callable[[Rollout], bool]
TextRow = Mapping[str, str]


def answers(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[TextRow]:
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


def answers_against_rejected(rollouts: Sequence[Rollout], solves: Solves) -> Sequence[TextRow]:
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


@dataclass(frozen=True)
class WithRejected:
    """A turn strategy whose rollouts have the answers that it rejected.

    Args:
        inner: The strategy.
    """

    inner: TurnStrategy

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        with record_rejected_answers() as rejected:
            answered = await self.inner(actor, rollout, observation)
        is_first = not rollout.turns  # a pair has one prompt, that of the task
        return replace(answered, rejected=tuple(rejected) if is_first else ())
