"""Ends a run whose weights have become infinite or NaN, before they are saved."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json
from grupo.distributed.phase import Phase
from grupo.util.exit_codes import CommandError
from grupo.util.sharded_tensors import is_sharded


class NonFiniteWeightsError(CommandError):
    """An update made weights infinite or NaN. The earlier checkpoints are unchanged."""


def check_finite_weights(
    parameters: Sequence[Tensor], learning_rates: Mapping[str, float], ranks: Ranks
) -> None:
    """Raise `NonFiniteWeightsError` on all ranks if a weight on one of them is infinite or NaN.

    Args:
        parameters: The weights after an update.
        learning_rates: The learning rates of the update, by optimizer, for the message.
        ranks: The processes that train together.
    """
    count = max(exchange_json(ranks, _num_nonfinite(parameters), Phase.WEIGHTS_CHECKED))
    if not count:
        return
    rates = ", ".join(f"{rate:g}" for rate in learning_rates.values())
    raise NonFiniteWeightsError(
        f"After the update {count} of {len(parameters)} weight tensors contain infinity or NaN; the"
        f" learning rate was {rates}. The run ends without saving them: its last checkpoint is that"
        " of an earlier step. Allowed: a learning_rate and a max_grad_norm that keep weights"
        " finite."
    )


@torch.no_grad()
def _num_nonfinite(parameters: Sequence[Tensor]) -> int:
    """Number of tensors with an entry that is infinite or NaN, in this process's shard."""
    local_tensors = [p.to_local() if is_sharded(p) else p for p in parameters]
    # the smallest and the largest entry are NaN if any entry is NaN
    extremes = [torch.stack(x.aminmax()).float() for x in local_tensors if x.numel()]
    if not extremes:
        return 0
    device = extremes[0].device
    finite = torch.stack([x.to(device) for x in extremes]).isfinite().all(1)
    return int((~finite).sum())
