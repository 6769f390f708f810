"""A method: what a paper chooses, as data."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from grupo.algo.advantages import Center, Credit, ScaleByStd, chain
from grupo.algo.aggregation import Weigh, sequence_mean
from grupo.algo.filters import Curate, keep_all
from grupo.algo.losses import Clip, Loss
from grupo.algo.minibatches import OnePass, Plan
from grupo.core.aux_heads import Helper
from grupo.core.component import parts, piece, show, walk
from grupo.core.controllers import Controller
from grupo.core.reference_update import Follow
from grupo.rollouts.curricula import Curriculum, Shuffled
from grupo.rollouts.samplers import Independent, Sampler


@piece
class Method:
    """Seven functions, one for each choice a paper makes; GRPO without KL unless told otherwise.

    `reference` says whether the reference policy, where one is read, follows the trained one.
    """

    curriculum: Curriculum = Shuffled()
    sample: Sampler = Independent(8)
    curate: Curate = keep_all
    credit: Credit = chain(Center(), ScaleByStd())
    loss: Loss = Clip()
    weigh: Weigh = sequence_mean
    plan: Plan = OnePass()
    reference: Follow = Follow()

    def but(self, **changes: Any) -> "Method":
        """The same method with some choices changed."""
        return replace(self, **changes)

    @property
    def needs(self) -> frozenset[str]:
        """Signals that some piece reads besides `logp`, however deep it lies."""
        return self.measured | self.loss.needs

    @property
    def measured(self) -> frozenset[str]:
        """Those to be measured before credit: of others, and whatever pieces but the loss read."""
        slots = (getattr(self, f.name) for f in fields(self) if f.name != "loss")
        declared = (getattr(part, "needs", ()) for slot in slots for part in walk(slot))
        return (self.loss.needs - self.loss.live).union(*declared)

    @property
    def readings(self) -> frozenset[str]:
        """The metrics that controllers in it follow."""
        return frozenset(part.reads for part in self._pieces() if isinstance(part, Controller))

    @property
    def remembers(self) -> frozenset[str]:
        """Components of the reward whose past some piece reads in `batch.past`."""
        return frozenset(x for part in self._pieces() for x in getattr(part, "remembers", ()))

    @property
    def replays(self) -> int:
        """How many of a task's best and of its worst rollouts some piece reads in `task.before`."""
        return max((getattr(part, "replays", 0) for part in self._pieces()), default=0)

    @property
    def reads_parts(self) -> frozenset[str]:
        """Components of the reward that some piece reads."""
        return frozenset(x for part in self._pieces() for x in getattr(part, "reads_parts", ()))

    @property
    def reads_columns(self) -> frozenset[str]:
        """Columns of the tasks that some piece reads."""
        return frozenset(x for part in self._pieces() for x in getattr(part, "reads_columns", ()))

    @property
    def roles(self) -> frozenset[str]:
        """Roles of rollouts that some piece gives, which may be policies of their own."""
        return frozenset(x for part in self._pieces() for x in getattr(part, "roles", ()))

    @property
    def helpers(self) -> tuple[Helper, ...]:
        """What is learned beside the policy because some piece asks for it."""
        declared = (x for part in self._pieces() for x in getattr(part, "helpers", ()))
        return tuple(dict.fromkeys(declared))

    def _pieces(self) -> Iterator[object]:
        """Whatever lies in its slots, however deep."""
        return (part for slot in parts(self).values() for part in walk(slot))


def changes(method: Method, base: Method = Method()) -> dict[str, str]:
    """The slots in which a method differs from `base`, as the code that fills them."""
    pairs = ((f.name, getattr(method, f.name)) for f in fields(method))
    return {name: show(value) for name, value in pairs if value != getattr(base, name)}
