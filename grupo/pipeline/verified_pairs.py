"""Pairs of rollouts by the checks of a verifier, for the rows of a `CollectStage`.

Source: the rollout-aware verifier of VerIPO, Li et al., arXiv:2505.19000.
"""

from collections.abc import Callable, Iterator, Sequence

from grupo.core.component import component
from grupo.core.types import Rollout
from grupo.pipeline.rows import Row

WRONG = "wrong"
Solves = Callable[[Rollout], bool]


@component
class VerifiedPairs:
    """Rows with the longest flawless rollout as `chosen`, and one row for each flaw in the group.

    A rollout that does not solve its task has the flaw "wrong". The flaw of a rollout that solves
    its task is the first check with a value of 1/2 or less. For each flaw, `rejected` is the first
    rollout with the flaw, and the column `flaw` has the name of the flaw. A group without a
    flawless rollout has no row.

    Args:
        checks: Names of reward terms that are 1 for a rollout that passes, in order of precedence.
        reflection: A text, or "". With a text, a group with a wrong rollout has one more row, with
            the flaw "unreflected". Its `rejected` is the first wrong rollout. Its `chosen` joins
            this rollout up to the end of its thoughts, the text, and all that follows the opening
            tag in the flawless rollout.
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
        first_by_flaw = {flaw: rollouts[0] for flaw, rollouts in by_flaw.items() if rollouts}
        rows = [(chosen.text, rejected.text, flaw) for flaw, rejected in first_by_flaw.items()]
        if WRONG in first_by_flaw:
            rows += self._reflections(first_by_flaw[WRONG].text, chosen.text)
        return [{"chosen": better, "rejected": worse, "flaw": flaw} for better, worse, flaw in rows]

    def _flaw(self, rollout: Rollout, solves: Solves) -> str:
        """The name of the flaw of a rollout; "" for a flawless one."""
        if not solves(rollout):
            return WRONG
        failed = (name for name in self.checks if rollout.reward_terms[name] <= 0.5)
        return next(failed, "")

    def _reflections(self, wrong: str, chosen: str) -> Iterator[tuple[str, str, str]]:
        """The row "unreflected" as (chosen, rejected, flaw); none if a text has no thoughts."""
        open_tag, close_tag = f"<{self.tag}>", f"</{self.tag}>"
        before, _, after_open = wrong.partition(open_tag)
        thoughts, has_close, _ = after_open.partition(close_tag)
        _, has_open, rest_of_chosen = chosen.partition(open_tag)
        if self.reflection and thoughts.strip() and has_close and has_open:
            reflected = f"{before}{open_tag}{thoughts}{self.reflection}{rest_of_chosen}"
            yield reflected, wrong, "unreflected"
