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
from grupo.core.component import component
from grupo.core.rng import uniform
from grupo.core.validation import check_constraints

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class MaskedViews:
    """Texts that are partly masked, and where each action is looked at."""

    token: Int[Tensor, "V L"]
    length: Int[Tensor, "V"]
    view: Int[Tensor, "M K"]  # the texts in which an action is looked at
    position: Int[Tensor, "M"]  # its place in them
    weight: Float[Tensor, "M K"]

    def average_views(self, name: str, values: Float[Tensor, "_"]) -> Float[Tensor, "M"]:
        """One number for each action: `logp` by weight, of anything else the mean of the looks."""
        each = values.unflatten(0, self.view.shape)
        return (each * self.weight.to(each)).sum(1) if name == "logp" else each.mean(1)


class LogpEstimator(Protocol):
    """From actions, by row and place, to the looks that say how likely they are."""

    @property
    def is_exact(self) -> bool:
        """Is it the probability with which an answer is drawn from left to right?"""
        ...

    def count_views(self, batch: Batch) -> Int[Tensor, "N"]:
        """How many texts are read for each row."""
        ...

    def __call__(
        self, inputs: Inputs, row: Tensor, position: Tensor, mask_token: int
    ) -> MaskedViews: ...


@component
class AutoregressiveEstimator:
    """log pi(o_t | q, o_<t): all before t is seen, all from t on to the canvas's end is masked.

    Exact for answers drawn from left to right; a text is read for each token. JustGRPO, Ni et al.,
    arXiv:2601.15165.
    """

    @property
    def is_exact(self) -> bool:
        return True

    def count_views(self, batch: Batch) -> Int[Tensor, "N"]:
        return batch.mask.sum(1)

    def __call__(
        self, inputs: Inputs, row: Tensor, position: Tensor, mask_token: int
    ) -> MaskedViews:
        token = inputs["token"][row]
        after = _positions(token) >= position[:, None]
        every = torch.arange(len(row))[:, None]
        length = inputs["canvas"][row, position]
        return MaskedViews(
            token.masked_fill(after, mask_token), length, every, position, torch.ones(every.shape)
        )


@component
class CoupledEstimator:
    """l = (l_0 + w l') / 2: a look with the whole answer masked, one with a part that holds it.

    An answer has one pair of masks: a share u, `low` to `high`, of its tokens, and all the others.
    l' is from that of the two in which the token is masked, w = 1/u or 1/(1 - u). The canvas behind
    an answer is masked throughout. Both are drawn from the answer's stream: whoever looks again has
    the same. Three texts are read for each answer. DiffuCoder, Gong et al., arXiv:2506.20639.
    """

    min_mask_ratio: float = 0.2
    max_mask_ratio: float = 0.8

    def __post_init__(self) -> None:
        within = 0 < self.min_mask_ratio <= self.max_mask_ratio < 1
        check_constraints(
            [
                (
                    "low, high",
                    (self.min_mask_ratio, self.max_mask_ratio),
                    within,
                    "above 0, in order, below 1",
                )
            ]
        )

    @property
    def is_exact(self) -> bool:
        return False

    def count_views(self, batch: Batch) -> Int[Tensor, "N"]:
        begin, over = batch.inputs["begin"], batch.inputs["over"]
        return 3 * ((begin == _positions(begin)) & (over > begin)).sum(1)

    def __call__(
        self, inputs: Inputs, row: Tensor, position: Tensor, mask_token: int
    ) -> MaskedViews:
        begins = torch.stack([row, inputs["begin"][row, position]], 1)
        answer, which = begins.unique(dim=0, return_inverse=True)
        row, begin = answer.unbind(1)
        share, held = self.draw_masks(inputs["stream"][row, begin], begin, inputs["token"].shape[1])
        token = inputs["token"][row]
        within = _positions(token) >= begin[:, None]
        behind = _positions(token) >= inputs["over"][row, begin][:, None]
        hidden = torch.stack([within, within & held | behind, within & ~held | behind], 1)
        texts = token[:, None].masked_fill(hidden, mask_token).flatten(0, 1)
        length = inputs["canvas"][row, begin].repeat_interleave(3)
        first, u = held[which, position], share[which]
        view = 3 * which[:, None] + torch.stack([which * 0, torch.where(first, 1, 2)], 1)
        weight = torch.stack([torch.ones_like(u), 1 / torch.where(first, u, 1 - u)], 1) / 2
        return MaskedViews(texts, length, view, position, weight)

    def draw_masks(
        self, mask_key: Int[Tensor, "A"], begin: Int[Tensor, "A"], width: int
    ) -> tuple[Float[Tensor, "A"], Bool[Tensor, "A L"]]:
        """Of each answer the share that is masked first, and which places are."""
        share = self.min_mask_ratio + (self.max_mask_ratio - self.min_mask_ratio) * uniform(
            mask_key, mask_key * 0
        )
        number = 1 + torch.arange(width) - begin[:, None]
        lot = uniform(mask_key.repeat_interleave(width), number.flatten())
        return share, lot.unflatten(0, number.shape) < share[:, None]


def _positions(token: Int[Tensor, "n L"]) -> Int[Tensor, "L"]:
    return torch.arange(token.shape[1])
