"""How likely an answer's tokens are: under which masks each is looked at, and what looks count.

Shape letters here: V texts that are partly masked, L places, M actions, K looks at each action.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.rng import uniform
from grupo.core.validation import check

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class Looks:
    """Texts that are partly masked, and where each action is looked at."""

    token: Int[Tensor, "V L"]
    length: Int[Tensor, "V"]
    view: Int[Tensor, "M K"]  # the texts in which an action is looked at
    place: Int[Tensor, "M"]  # its place in them
    weight: Float[Tensor, "M K"]

    def fold(self, name: str, said: Float[Tensor, "_"]) -> Float[Tensor, "M"]:
        """One number for each action: `logp` by weight, of anything else the mean of the looks."""
        each = said.unflatten(0, self.view.shape)
        return (each * self.weight.to(each)).sum(1) if name == "logp" else each.mean(1)


class Estimate(Protocol):
    """From actions, by row and place, to the looks that say how likely they are."""

    @property
    def exact(self) -> bool:
        """Is it the probability with which an answer is drawn from left to right?"""
        ...

    def count(self, batch: Batch) -> Int[Tensor, "N"]:
        """How many texts are read for each row."""
        ...

    def __call__(self, inputs: Inputs, row: Tensor, place: Tensor, mask: int) -> Looks: ...


@piece
class Autoregressive:
    """log pi(o_t | q, o_<t): all before t is seen, all from t on to the canvas's end is masked.

    Exact for answers drawn from left to right; a text is read for each token. JustGRPO, Ni et al.,
    arXiv:2601.15165.
    """

    @property
    def exact(self) -> bool:
        return True

    def count(self, batch: Batch) -> Int[Tensor, "N"]:
        return batch.mask.sum(1)

    def __call__(self, inputs: Inputs, row: Tensor, place: Tensor, mask: int) -> Looks:
        token = inputs["token"][row]
        after = _places(token) >= place[:, None]
        every = torch.arange(len(row))[:, None]
        length = inputs["canvas"][row, place]
        return Looks(token.masked_fill(after, mask), length, every, place, torch.ones(every.shape))


@piece
class Coupled:
    """l = (l_0 + w l') / 2: a look with the whole answer masked, one with a part that holds it.

    An answer has one pair of masks: a share u, `low` to `high`, of its tokens, and all the others.
    l' is from that of the two in which the token is masked, w = 1/u or 1/(1 - u). The canvas behind
    an answer is masked throughout. Both are drawn from the answer's stream: whoever looks again has
    the same. Three texts are read for each answer. DiffuCoder, Gong et al., arXiv:2506.20639.
    """

    low: float = 0.2
    high: float = 0.8

    def __post_init__(self) -> None:
        within = 0 < self.low <= self.high < 1
        check([("low, high", (self.low, self.high), within, "above 0, in order, below 1")])

    @property
    def exact(self) -> bool:
        return False

    def count(self, batch: Batch) -> Int[Tensor, "N"]:
        begin, over = batch.inputs["begin"], batch.inputs["over"]
        return 3 * ((begin == _places(begin)) & (over > begin)).sum(1)

    def __call__(self, inputs: Inputs, row: Tensor, place: Tensor, mask: int) -> Looks:
        begins = torch.stack([row, inputs["begin"][row, place]], 1)
        answer, which = begins.unique(dim=0, return_inverse=True)
        row, begin = answer.unbind(1)
        share, held = self.masks(inputs["stream"][row, begin], begin, inputs["token"].shape[1])
        token = inputs["token"][row]
        within = _places(token) >= begin[:, None]
        behind = _places(token) >= inputs["over"][row, begin][:, None]
        hidden = torch.stack([within, within & held | behind, within & ~held | behind], 1)
        texts = token[:, None].masked_fill(hidden, mask).flatten(0, 1)
        length = inputs["canvas"][row, begin].repeat_interleave(3)
        first, u = held[which, place], share[which]
        view = 3 * which[:, None] + torch.stack([which * 0, torch.where(first, 1, 2)], 1)
        weight = torch.stack([torch.ones_like(u), 1 / torch.where(first, u, 1 - u)], 1) / 2
        return Looks(texts, length, view, place, weight)

    def masks(
        self, stream: Int[Tensor, "A"], begin: Int[Tensor, "A"], width: int
    ) -> tuple[Float[Tensor, "A"], Bool[Tensor, "A L"]]:
        """Of each answer the share that is masked first, and which places are."""
        share = self.low + (self.high - self.low) * uniform(stream, stream * 0)
        number = 1 + torch.arange(width) - begin[:, None]
        lot = uniform(stream.repeat_interleave(width), number.flatten())
        return share, lot.unflatten(0, number.shape) < share[:, None]


def _places(token: Int[Tensor, "n L"]) -> Int[Tensor, "L"]:
    return torch.arange(token.shape[1])
