"""Inference servers that several ranks use: the first rank hands over the weights."""

from typing import Any

from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json
from grupo.inference.server_sharing import ServerSharing
from grupo.models.base import Policy


def share_servers(policy: Policy, ranks: Ranks) -> None:
    """Let all ranks wait, before they generate, until the servers have the first rank's weights."""
    if ranks.size == 1:
        return

    def exchange(value: Any) -> Any:
        return exchange_json(ranks, value, "weights on the servers", "generate")[0]

    policy.weight_sync.share_servers(ServerSharing(ranks.rank == 0, exchange))
