"""Routes of rollouts as padded rows, for the update to replay."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from grupo.core.types import Rollout
from grupo.inference.routes import decode_routes
from grupo.kernels.routing import OWN_CHOICE


def encode_routes_of_rows(
    rollouts: Sequence[Rollout], width: int, routes_per_token: int
) -> Int[Tensor, "N L layers*k"]:
    """The experts that were chosen for each token while it was sampled, or `OWN_CHOICE`.

    The last token of a response was chosen, and not read, when the response ended. Its routes are
    those of the next response.

    Args:
        rollouts: rollouts of one context each, which become rows.
        width: number of tokens of a padded row.
        routes_per_token: number of layers times the number of experts chosen in a layer.
    """
    routes = torch.full((len(rollouts), width, routes_per_token), OWN_CHOICE, dtype=torch.int16)
    for row, rollout in enumerate(rollouts):
        end = 0
        for _, response in rollout.turns:
            start = max(0, end - 1)
            end += len(response.observation) + len(response.items)
            if response.routes and not response.off_context:
                recorded = decode_routes(response.routes)[: end - 1 - start]
                routes[row, start : start + len(recorded)] = recorded
    return routes
