"""A method: what a paper chooses, as data."""

from dataclasses import fields, replace
from typing import Any

from grupo.credit import Center, Credit, ScaleByStd, chain
from grupo.curate import Curate, keep_all
from grupo.curricula import Curriculum, Shuffled
from grupo.losses import Clip, Loss
from grupo.piece import piece, show, walk
from grupo.plans import OnePass, Plan
from grupo.sampling import Independent, Sampler
from grupo.weights import Weigh, sequence_mean


@piece
class Method:
    """Seven functions, one for each choice a paper makes; GRPO without KL unless told otherwise."""

    curriculum: Curriculum = Shuffled()
    sample: Sampler = Independent(8)
    curate: Curate = keep_all
    credit: Credit = chain(Center(), ScaleByStd())
    loss: Loss = Clip()
    weigh: Weigh = sequence_mean
    plan: Plan = OnePass()

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
        others = (name for name in self.loss.needs if "@" in name)
        return frozenset(others).union(*declared)


def changes(method: Method, base: Method = Method()) -> dict[str, str]:
    """The slots in which a method differs from `base`, as the code that fills them."""
    pairs = ((f.name, getattr(method, f.name)) for f in fields(method))
    return {name: show(value) for name, value in pairs if value != getattr(base, name)}
