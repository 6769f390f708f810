"""In which order an answer's tokens are unmasked."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.component import component
from grupo.core.validation import check_constraints


class UnmaskingOrder(Protocol):
    """Block after block; in a block the places of the highest score, so many at each look.

    The score is known before tokens are drawn: each is drawn from what the model says of it.
    """

    @property
    def block_length(self) -> int: ...

    @property
    def tokens_per_step(self) -> int: ...

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]: ...


@component
class LeftToRight:
    """One token at each look, the first that is masked: what an autoregressive model does.

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
    """The places whose likeliest token is the likeliest, `at_once` at each look.

    LLaDA (Nie et al., arXiv:2502.09992) scores a place by the token that it has drawn there.

    >>> ConfidenceOrder()(torch.tensor([[[0.0, 0.0], [9.0, 0.0]]])).argmax(-1).tolist()
    [1]
    """

    block_length: int = 8
    tokens_per_step: int = 1

    def __post_init__(self) -> None:
        within = 1 <= self.tokens_per_step <= self.block_length
        check_constraints(
            [
                ("block", self.block_length, self.block_length >= 1, "1 or more"),
                ("at_once", self.tokens_per_step, within, f"1 to {self.block_length}, the block"),
            ]
        )

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]:
        return logits.float().log_softmax(-1).amax(-1)
