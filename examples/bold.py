"""Bold: rare successes have larger advantages than common ones. An example, not a paper."""

from grupo.algo.advantages import Center, chain
from grupo.core import group_ops
from grupo.method import Method


def by_rarity(x, batch):
    """x / sqrt(p (1 - p) + 0.05), p the mean reward of the group: bounded, unlike 1 / std."""
    p = group_ops.mean(batch.reward, batch.group)
    return x / (p * (1 - p) + 0.05).sqrt()


def bold() -> Method:
    """A = (r - p) / sqrt(p (1 - p) + 0.05)."""
    return Method(advantage=chain(Center(), by_rarity))
