"""Cut points: numbers of items (tokens) after which rollouts are cut and continued anew."""

from collections.abc import Sequence
from itertools import accumulate
from math import exp
from typing import Protocol

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.ranges import NonEmptyString, Probability
from grupo.core.types import Rollout


class CutPoints(Protocol):
    """Chooses where a rollout is cut."""

    def __call__(self, rollout: Rollout, actor: Actor, /) -> Sequence[int]:
        """The cut points of a rollout in ascending order, each below the rollout's length."""
        ...


@component
class AtFractions:
    """Cuts at fixed fractions of a rollout's items, rounded down; 0 is the end of the prompt.

    Args:
        fractions: The fractions, each below 1.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout().append_turn("?", Response((5, 6, 7, 8, 9), (0.0,) * 5))
    >>> AtFractions((0.0, 0.5, 0.9))(rollout)
    [0, 2, 4]
    """

    fractions: tuple[Probability, ...] = (0.0, 0.25, 0.5, 0.75)

    def __post_init__(self) -> None:
        check_field(self, "fractions", all(x < 1 for x in self.fractions), "fractions below 1")

    def __call__(self, rollout: Rollout, actor: Actor | None = None) -> Sequence[int]:
        cuts = {int(fraction * rollout.length) for fraction in self.fractions}
        return sorted(cuts) if rollout.length else []


@component
class AtUnlikelyItems:
    """Cuts before the first unlikely item, and before every n-th unlikely item after it.

    SPO-chain, Guo et al. (arXiv:2505.23564).

    Args:
        below: An item is unlikely if its probability is below this.
        items_per_segment: Number n of unlikely items from one cut to the next.

    >>> from math import log
    >>> from grupo.core.types import Response
    >>> logp = tuple(map(log, (0.95, 0.5, 0.99, 0.6, 0.99, 0.4)))
    >>> rollout = Rollout().append_turn("?", Response((0,) * 6, logp))
    >>> AtUnlikelyItems()(rollout), AtUnlikelyItems(items_per_segment=2)(rollout)
    ([1, 3, 5], [1, 5])
    """

    below: Fraction = 0.9
    items_per_segment: PositiveInt = 1

    def __call__(self, rollout: Rollout, actor: Actor | None = None) -> Sequence[int]:
        logps = [
            logp if response.sampled and response.in_loss else 0.0
            for _, response in rollout.turns
            for logp in response.logp
        ]
        unlikely = [i for i, logp in enumerate(logps) if exp(logp) < self.below]
        return unlikely[:: self.items_per_segment]


@component
class AtTurns:
    """Cuts before each turn of a rollout. The first cut is at 0, the end of the prompt.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout().append_turn("?", Response((5, 6), (0.0,) * 2, (1,)))
    >>> AtTurns()(rollout.append_turn("and?", Response((7,), (0.0,), (2,))))
    [0, 2]
    """

    def __call__(self, rollout: Rollout, actor: Actor | None = None) -> Sequence[int]:
        responses = [response for _, response in rollout.turns]
        starts = accumulate((len(response.items) for response in responses), initial=0)
        pairs = zip(starts, responses, strict=False)
        cuts = {start for start, response in pairs if response.observation and response.items}
        return sorted(cuts)


@component
class AfterText:
    """Cuts at 0, the end of the prompt, and after each item that completes an occurrence of a text.

    Args:
        text: The text between segments of an answer, such as a line break.
    """

    text: NonEmptyString = "\n"

    def __call__(self, rollout: Rollout, actor: Actor) -> Sequence[int]:
        cuts = {0} if rollout.length else set[int]()
        start = 0
        for i, (_, response) in enumerate(rollout.turns):
            through_response = Rollout(rollout.turns[: i + 1], role=rollout.role)
            count = 0
            for end in range(1, len(response.items) + 1):
                text = actor.truncate(through_response, end).last_response.text
                new_count = text.count(self.text)
                if new_count > count:
                    cuts.add(start + end)
                count = new_count
            start += len(response.items)
        return sorted(cut for cut in cuts if cut < rollout.length)
