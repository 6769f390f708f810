"""Replay: rollouts of earlier steps that join the batch of a step.

Compared, step by step: the rollouts that are stored, and those that have left; the number of
rollouts that are drawn, and the probability of each draw; the rollouts of the batch in order, with
the advantages that they were given when they were generated.

A rollout is (name, advantage). The draws of a run are random; the functions take those that were
made and state what follows from them.

Written from
    TIGER-AI-Lab/VL-Rethinker, openrlhf/trainer/ppo_utils/replay_buffer.py, `active_sampling`:
        rollouts with an advantage are stored, the oldest leave; draws by |A|. As the record states:
        each rollout of the step with an advantage is trained on once, the others give their places
        to stored ones, the weights are |A|^alpha, a draw is without replacement;
    the record of skywork_r1v2 (arXiv:2504.16656 was not opened); its capacity, age limit, share
        and draw are our reading;
    a public note on ReMix, arXiv:2507.06892: a share p of the batch comes from the last N steps, i
        uniform; the advantages stay, as the record states. Uniform over the stored rollouts of
        these steps, without replacement, is our reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import floor

Rollout = tuple[str, float]  # name and advantage


@dataclass(frozen=True)
class Stored:
    """A stored rollout.

    Args:
        rollout: The rollout.
        step: The step that generated it, from 0.
    """

    rollout: Rollout
    step: int


def fill_count(advantages: Sequence[float], max_share: float) -> int:
    """Places of a step that stored rollouts may take: those of rollouts without an advantage."""
    empty = sum(a == 0 for a in advantages)
    return min(empty, floor(max_share * len(advantages) + 1e-9))


def weights(buffer: Sequence[Stored], step: int, alpha: float, max_age: int) -> list[float]:
    """Weight of each stored rollout; 0 for one that is too old. An age of 0 sets no limit."""
    return [
        abs(s.rollout[1]) ** alpha if not max_age or step - s.step <= max_age else 0.0
        for s in buffer
    ]


def sequence_probabilities(weight: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
    """Probability of each ordered draw without replacement, each next one by the weights left."""
    result = {}
    for order in permutations([i for i, w in enumerate(weight) if w > 0], count):
        left, probability = sum(weight), 1.0
        for i in order:
            probability *= weight[i] / left
            left -= weight[i]
        result[order] = probability
    return result


def filled_batch(step: Sequence[Rollout], drawn: Sequence[Rollout]) -> list[Rollout]:
    """The batch: drawn rollouts replace rollouts without advantage, the last ones first.

    The places left to those are the first ones. Drawn rollouts stand behind the step's own. The
    order is our reading; no source states it.
    """
    empty = [i for i, (_, a) in enumerate(step) if a == 0]
    replaced = set(empty[len(empty) - len(drawn) :])
    return [r for i, r in enumerate(step) if i not in replaced] + list(drawn)


def stored_after(
    buffer: Sequence[Stored], added: Sequence[Rollout], step: int, capacity: int
) -> list[Stored]:
    """The buffer after a step: newest last, the oldest leave."""
    return [*buffer, *(Stored(r, step) for r in added)][-capacity:]


def mixed_count(fresh: int, old_share: float) -> int:
    """Old rollouts beside `fresh` new ones, so that they are `old_share` of the batch."""
    return round(old_share / (1 - old_share) * fresh)


def in_window(buffer: Sequence[Stored], step: int, window: int) -> list[int]:
    """Places in the buffer of the rollouts that are at most `window` steps old."""
    return [i for i, s in enumerate(buffer) if 1 <= step - s.step <= window]
