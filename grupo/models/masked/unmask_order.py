"""In which order an answer's tokens are unmasked."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.component import piece
from grupo.core.validation import check


class Order(Protocol):
    """Block after block; in a block the places of the highest score, so many at each look.

    The score is known before tokens are drawn: each is drawn from what the model says of it.
    """

    @property
    def block(self) -> int: ...

    @property
    def at_once(self) -> int: ...

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]: ...


@piece
class LeftToRight:
    """One token at each look, the first that is masked: what an autoregressive model does.

    >>> LeftToRight()(torch.zeros(1, 3, 2)).tolist()
    [[-0.0, -1.0, -2.0]]
    """

    @property
    def block(self) -> int:
        return 1

    @property
    def at_once(self) -> int:
        return 1

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]:
        return -torch.arange(logits.shape[1], device=logits.device).expand(len(logits), -1).float()


@piece
class Confident:
    """The places whose likeliest token is the likeliest, `at_once` at each look.

    LLaDA (Nie et al., arXiv:2502.09992) scores a place by the token that it has drawn there.

    >>> Confident()(torch.tensor([[[0.0, 0.0], [9.0, 0.0]]])).argmax(-1).tolist()
    [1]
    """

    block: int = 8
    at_once: int = 1

    def __post_init__(self) -> None:
        within = 1 <= self.at_once <= self.block
        check(
            [
                ("block", self.block, self.block >= 1, "1 or more"),
                ("at_once", self.at_once, within, f"1 to {self.block}, the block"),
            ]
        )

    def __call__(self, logits: Float[Tensor, "m L V"]) -> Float[Tensor, "m L"]:
        return logits.float().log_softmax(-1).amax(-1)
