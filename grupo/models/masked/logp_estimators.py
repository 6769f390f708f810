"""Estimators of an answer's log-probabilities under a masked diffusion model.

A view is a text with some tokens masked. An estimator decides in which views each action is
evaluated, and how these are averaged. Shape letters: V views, L positions, M actions, K views per
action, A answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.component import check_field, component
from grupo.core.ranges import OpenProbability
from grupo.util.rng import uniform

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class MaskedViews:
    """Masked texts, and where each action is evaluated.

    Args:
        token: tokens of the views.
        length: lengths of the views.
        view: the views in which an action is evaluated.
        position: the action's position in them.
        weight: weights of an action's log-probabilities.
    """

    token: Int[Tensor, "V L"]
    length: Int[Tensor, "V"]
    view: Int[Tensor, "M K"]
    position: Int[Tensor, "M"]
    weight: Float[Tensor, "M K"]

    def average_views(self, name: str, values: Float[Tensor, "_"]) -> Float[Tensor, "M"]:
        """One value per action: for `logp` the weighted sum over its views, otherwise the mean."""
        per_view = values.unflatten(0, self.view.shape)
        if name == "logp":
            return (per_view * self.weight.to(per_view)).sum(1)
        return per_view.mean(1)


class LogpEstimator(Protocol):
    """Maps actions, as rows and positions, to the views in which they are evaluated."""

    @property
    def is_exact(self) -> bool:
        """Whether it is the probability of generation from left to right."""
        ...

    def count_views(self, batch: Batch) -> Int[Tensor, "N"]:
        """Number of views for each row."""
        ...

    def __call__(
        self, inputs: Inputs, row: Tensor, position: Tensor, mask_token: int
    ) -> MaskedViews: ...


@component
class AutoregressiveEstimator:
    """log pi(o_t | q, o_<t): tokens from t to the end of the canvas are masked.

    Exact for generation from left to right; one view per token. JustGRPO, Ni et al.,
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
        masked = _positions(token) >= position[:, None]
        view = torch.arange(len(row))[:, None]
        length = inputs["canvas_end"][row, position]
        return MaskedViews(
            token.masked_fill(masked, mask_token), length, view, position, torch.ones(view.shape)
        )


@component
class CoupledEstimator:
    """l = (l_0 + w l') / 2, from a view with all tokens masked and one of two complementary views.

    The tokens of an answer are divided at random: a fraction u is masked in the first of the
    complementary views, the others in the second. l' is from the view that masks the token, with
    w = 1/u or 1/(1 - u). The canvas after the answer is always masked. u and the masks are sampled
    from the answer's stream, so each evaluation uses the same; three views per answer.
    DiffuCoder, Gong et al., arXiv:2506.20639.

    Args:
        min_mask_ratio: lower bound of u.
        max_mask_ratio: upper bound of u.
    """

    min_mask_ratio: OpenProbability = 0.2
    max_mask_ratio: OpenProbability = 0.8

    def __post_init__(self) -> None:
        in_order = self.min_mask_ratio <= self.max_mask_ratio
        allowed = f"{self.min_mask_ratio}, which is min_mask_ratio, or more"
        check_field(self, "max_mask_ratio", in_order, allowed)

    @property
    def is_exact(self) -> bool:
        return False

    def count_views(self, batch: Batch) -> Int[Tensor, "N"]:
        begin = batch.inputs["begin"]
        end = batch.inputs["end"]
        return 3 * ((begin == _positions(begin)) & (end > begin)).sum(1)

    def __call__(
        self, inputs: Inputs, row: Tensor, position: Tensor, mask_token: int
    ) -> MaskedViews:
        begins = torch.stack([row, inputs["begin"][row, position]], 1)
        answers, answer = begins.unique(dim=0, return_inverse=True)
        row, begin = answers.unbind(1)
        width = inputs["token"].shape[1]
        ratio, in_first = self.draw_masks(inputs["mask_key"][row, begin], begin, width)
        token = inputs["token"][row]
        from_begin = _positions(token) >= begin[:, None]
        after_end = _positions(token) >= inputs["end"][row, begin][:, None]
        first = from_begin & in_first | after_end
        second = from_begin & ~in_first | after_end
        masked = torch.stack([from_begin, first, second], 1)
        texts = token[:, None].masked_fill(masked, mask_token).flatten(0, 1)
        length = inputs["canvas_end"][row, begin].repeat_interleave(3)
        is_first = in_first[answer, position]
        u = ratio[answer]
        view = 3 * answer[:, None] + torch.stack([answer * 0, torch.where(is_first, 1, 2)], 1)
        weight = torch.stack([torch.ones_like(u), 1 / torch.where(is_first, u, 1 - u)], 1) / 2
        return MaskedViews(texts, length, view, position, weight)

    def draw_masks(
        self, mask_key: Int[Tensor, "A"], begin: Int[Tensor, "A"], width: int
    ) -> tuple[Float[Tensor, "A"], Bool[Tensor, "A L"]]:
        """The fraction u of each answer, and the positions that its first view masks."""
        max_extra = self.max_mask_ratio - self.min_mask_ratio
        ratio = self.min_mask_ratio + max_extra * uniform(mask_key, mask_key * 0)
        number = 1 + torch.arange(width) - begin[:, None]
        noise = uniform(mask_key.repeat_interleave(width), number.flatten())
        return ratio, noise.unflatten(0, number.shape) < ratio[:, None]


def _positions(token: Int[Tensor, "n L"]) -> Int[Tensor, "L"]:
    return torch.arange(token.shape[1])
