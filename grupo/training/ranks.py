"""Several ranks that train one policy: checks of the recipe, sharded weights, shared servers."""

from importlib import metadata
from typing import Any

from grupo.core.component import walk
from grupo.distributed.agreement import check_same_values
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json
from grupo.distributed.phase import Phase
from grupo.distributed.torch_ranks import TorchRanks
from grupo.inference.server_sharing import ServerSharing
from grupo.inference.vllm import Vllm
from grupo.models.base import Policy
from grupo.models.causal_policy import CausalPolicy
from grupo.recipe import Recipe
from grupo.training.resume.stored_recipe import StoredRecipe
from grupo.util.errors import ConfigError


def check_ranks(recipe: Recipe, ranks: Ranks) -> None:
    """Raise `ConfigError` if the ranks differ, or cannot train the recipe together."""
    if ranks.size == 1:
        return
    for part in walk(recipe.policy):
        if isinstance(part, Vllm) and part.python:
            raise ConfigError(
                f"policy.engine.python: {part.python!r}. Allowed with several ranks: '', and the"
                " urls of running servers; `grupo serve` starts them."
            )
        if (device := getattr(part, "device", "")).startswith("cuda:"):
            raise ConfigError(
                f"device: {device!r}, which all {ranks.size} ranks would share. Allowed with"
                ' several ranks: "auto", "cuda" (the GPU of the rank) or "cpu".'
            )
    check_same_values(
        ranks,
        {
            "grupo": metadata.version("grupo"),
            "torch": metadata.version("torch"),
            "the recipe": StoredRecipe(recipe).fingerprint,
        },
    )


def shard_policy(policy: Policy, ranks: Ranks) -> None:
    """Divide the weights of a language model among the ranks, if its spec has `sharding`."""
    if isinstance(ranks, TorchRanks) and isinstance(policy, CausalPolicy) and policy.spec.sharding:
        policy.shard(ranks.mesh(policy.device.type))


def use_same_inference_servers(policy: Policy, ranks: Ranks) -> None:
    """Let all ranks generate with the same inference servers, if the policy has any.

    Rank 0 sends its weights to the servers. The other ranks wait for this before they generate.
    """
    if ranks.size == 1:
        return

    def value_of_rank_0(value: Any) -> Any:
        return exchange_json(ranks, value, Phase.WEIGHTS_ON_SERVERS, "generate")[0]

    policy.weight_sync.share_servers(ServerSharing(ranks.rank == 0, value_of_rank_0))
