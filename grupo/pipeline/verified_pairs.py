"""Pairs of rollouts by the checks of a verifier, for the rows of a `CollectStage`.

Source: the rollout-aware verifier of VerIPO, Li et al., arXiv:2505.19000.
"""

from collections.abc import Callable, Iterator, Sequence

from grupo.core.component import component
from grupo.core.types import Rollout
from grupo.pipeline.collect import Row

WRONG = "wrong"
Solves = Callable[[Rollout], bool]


@component
class VerifiedPairs:
    """The longest rollout without a flaw as `chosen`, against one rollout of each flaw.

    A rollout is wrong if it does not solve its task. The flaw of another rollout is the first check
    that is not above 1/2. The column `flaw` has the name of the flaw. Without a rollout that has no
    flaw, a group has no row.

    Args:
        checks: Reward terms that are 1 for a rollout that passes, in the order of precedence.
        reflection: With a text, a further row `unreflected` has as `chosen` the thoughts of a wrong
            rollout, this text and the thoughts of the chosen rollout. The wrong rollout is
            `rejected`. "" makes no such row.
        tag: Name of the tag around the thoughts, without brackets.

    >>> from grupo.core.types import Response
    >>> def rollout(text, right, consistent):
    ...     terms = {"right": right, "consistent": consistent}
    ...     return Rollout((("?", Response((1,), (0.0,), text=text)),), reward_terms=terms)
    >>> group = [rollout("4", 1, 1), rollout("so 5: 4", 1, 0), rollout("5", 0, 1)]
    >>> rows = VerifiedPairs(("consistent",))(group, lambda x: x.reward_terms["right"] > 0.5)
    >>> [(row["chosen"], row["rejected"], row["flaw"]) for row in rows]
    [('4', '5', 'wrong'), ('4', 'so 5: 4', 'consistent')]
    """

    checks: tuple[str, ...]
    reflection: str = ""
    tag: str = "think"

    def __call__(self, rollouts: Sequence[Rollout], solves: Solves) -> Sequence[Row]:
        by_flaw: dict[str, list[Rollout]] = {name: [] for name in ("", WRONG, *self.checks)}
        for rollout in rollouts:
            by_flaw[self._flaw(rollout, solves)].append(rollout)
        if not by_flaw[""]:
            return []
        chosen = max(by_flaw.pop(""), key=lambda rollout: rollout.length)
        firsts = {flaw: rejected[0] for flaw, rejected in by_flaw.items() if rejected}
        rows = [(chosen.text, rejected.text, flaw) for flaw, rejected in firsts.items()]
        if WRONG in firsts:
            rows += self._reflections(firsts[WRONG].text, chosen.text)
        return [{"chosen": better, "rejected": worse, "flaw": flaw} for better, worse, flaw in rows]

    def _flaw(self, rollout: Rollout, solves: Solves) -> str:
        if not solves(rollout):
            return WRONG
        failed = (name for name in self.checks if rollout.reward_terms[name] <= 0.5)
        return next(failed, "")

    def _reflections(self, wrong: str, chosen: str) -> Iterator[tuple[str, str, str]]:
        """The wrong thoughts, the reflection and the whole chosen rollout behind its tag."""
        opened, closed = f"<{self.tag}>", f"</{self.tag}>"
        before, _, thoughts = wrong.partition(opened)
        thoughts, is_closed, _ = thoughts.partition(closed)
        _, is_opened, rest = chosen.partition(opened)
        if self.reflection and thoughts.strip() and is_closed and is_opened:
            yield f"{before}{opened}{thoughts}{self.reflection}{rest}", wrong, "unreflected"
