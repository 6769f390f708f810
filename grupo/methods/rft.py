"""RFT: learn by heart your own right answers. Zelikman et al., 2022, arXiv:2203.14465."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import fully
from grupo.algo.losses import Likelihood
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="STaR: Bootstrapping Reasoning With Reasoning",
    use="The simplest baseline: it never makes anything less likely on purpose.",
    checked=("golden", "laws", "run"),
)


@piece
class KeepRight:
    """The rollouts whose `part` is above `right`; groups without one are dropped."""

    part: str = "correct"
    right: float = 0.5

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component that says so."""
        return (self.part,)

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        kept = [replace(group, rollouts=self._right(group)) for group in groups]
        return [group for group in kept if group.rollouts]

    def _right(self, group: Group) -> tuple:
        return tuple(r for r in group.rollouts if r.parts.get(self.part, 0.0) > self.right)


def rft(group: int = 8) -> Method:
    """loss = mean over the tokens of right rollouts of -log pi: rejection fine-tuning.

    The policy gradient of a reward of 1 or 0 without a baseline, divided by the share that is
    right.
    """
    # STaR trains from the base anew in every round and also learns rationales of answers that it
    # was told; this goes on from where it is, and is told nothing. `group` is our choice.
    return Method(
        sample=Independent(group),
        curate=KeepRight(),
        credit=fully,
        loss=Likelihood(),
        weigh=token_mean,
    )
