"""Orders in which a masked diffusion model unmasks an answer's tokens."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt


class UnmaskingOrder(Protocol):
    """Block by block; within a block, the `tokens_per_step` positions of the highest score.

    Scores are computed before tokens are sampled, so the order does not bias a token's
    distribution.
    """

    @property
    def block_length(self) -> int: ...

    @property
    def tokens_per_step(self) -> int: ...

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]: ...


@component
class LeftToRight:
    """One token per step, from left to right, as an autoregressive model generates.

    >>> LeftToRight()(torch.zeros(1, 3, 2)).tolist()
    [[-0.0, -1.0, -2.0]]
    """

    @property
    def block_length(self) -> int:
        return 1

    @property
    def tokens_per_step(self) -> int:
        return 1

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]:
        return -torch.arange(logits.shape[1], device=logits.device).expand(len(logits), -1).float()


@component
class ConfidenceOrder:
    """Positions by the probability of their most likely token.

    LLaDA (Nie et al., arXiv:2502.09992) scores a position by the token that it has sampled there.

    Args:
        block_length: tokens of a block.
        tokens_per_step: tokens unmasked per forward pass.

    >>> ConfidenceOrder()(torch.tensor([[[0.0, 0.0], [9.0, 0.0]]])).argmax(-1).tolist()
    [1]
    """

    block_length: PositiveInt = 8
    tokens_per_step: PositiveInt = 1

    def __post_init__(self) -> None:
        length = self.block_length
        check_field(
            self, "tokens_per_step", self.tokens_per_step <= length, f"1 to {length}, the block"
        )

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]:
        return logits.float().log_softmax(-1).amax(-1)
