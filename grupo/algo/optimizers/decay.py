"""Weight decay: the parameters that it applies to, as parameter groups of an optimizer."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from torch import nn


class DecaySelection(Protocol):
    """Selects the parameters that weight decay applies to."""

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter]
    ) -> Sequence[nn.Parameter]:
        """The selected ones among `parameters`."""
        ...


def hidden_weights(
    parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter]
) -> Sequence[nn.Parameter]:
    """Weights of two or more dimensions, except embeddings: no norms and no biases."""
    embedding_ids = set(map(id, embeddings))
    return [p for p in parameters if p.ndim > 1 and id(p) not in embedding_ids]


def all_parameters(
    parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter]
) -> Sequence[nn.Parameter]:
    """All parameters."""
    return parameters


def decay_groups(
    parameters: Sequence[nn.Parameter],
    embeddings: Collection[nn.Parameter],
    weight_decay: float,
    decayed: DecaySelection,
) -> list[dict[str, Any]]:
    """Parameter groups with and without weight decay; a single group if `weight_decay` is 0.

    >>> import torch
    >>> norm, layer, table = (nn.Parameter(torch.ones(size)) for size in ((2,), (2, 2), (5, 2)))
    >>> groups = decay_groups([table, norm, layer], [table], 0.1, hidden_weights)
    >>> [(group["weight_decay"], [tuple(p.shape) for p in group["params"]]) for group in groups]
    [(0.1, [(2, 2)]), (0.0, [(5, 2), (2,)])]
    """
    if not weight_decay:
        return [{"params": list(parameters), "weight_decay": 0.0}]
    selected, others = split_parameters(parameters, decayed(parameters, embeddings))
    groups = [
        {"params": selected, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def split_parameters(
    parameters: Sequence[nn.Parameter], selected: Collection[nn.Parameter]
) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The selected parameters and the others, each in their order."""
    ids = set(map(id, selected))
    return [p for p in parameters if id(p) in ids], [p for p in parameters if id(p) not in ids]
