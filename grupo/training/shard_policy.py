"""Weights that ranks divide among each other, if the policy of the recipe asks for it."""

from grupo.distributed.base import Ranks
from grupo.distributed.torch_ranks import TorchRanks
from grupo.models.base import Policy
from grupo.models.causal_policy import CausalPolicy


def shard_policy(policy: Policy, ranks: Ranks) -> None:
    """Divide the weights of a language model with `sharding`; a single rank keeps all of them."""
    if isinstance(ranks, TorchRanks) and isinstance(policy, CausalPolicy) and policy.spec.sharding:
        policy.shard(ranks.mesh(policy.device.type))
