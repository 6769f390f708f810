"""FSDP2 trains mixtures of experts to the same numbers as whole weights do."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.distributed.conftest import largest_difference
from tests.distributed.test_sharding import FSDP2, assert_same_training, trained_whole_and_sharded
from tests.helpers.moe_models import MOE, save_moe

pytestmark = pytest.mark.slow
# the router of DeepSeek-V3 multiplies in float32: its numbers depend on the division of the rows
IN_FLOAT64 = [family for family in MOE if family != "deepseek_v3"]
TOKENS = 72  # of a step: 8 rows with prompts of at most 3 tokens and answers of 6


@pytest.fixture(scope="module")
def moe(tmp_path_factory):
    """Folder of a model of each family."""
    root = tmp_path_factory.mktemp("moe")
    return {family: save_moe(root / family, family) for family in MOE}


def fields(model):
    return {
        "policy.model": repr(model),
        "policy.router_aux_loss": "0.1",
        "policy.router_replay": "True",
        "policy.tokens_per_microbatch": "24",
    }


@pytest.mark.parametrize(
    ("family", "recipe"), [*((family, "grpo") for family in IN_FLOAT64), ("gpt_oss", "lora")]
)
def test_sharded_experts_equal_whole_ones(rank_processes, moe, family, recipe):
    whole, sharded = trained_whole_and_sharded(
        rank_processes, recipe, family, **fields(moe[family])
    )
    assert whole.metrics[0]["router/replayed_frac"] == 1.0
    assert_same_training(sharded, whole)


def test_sharded_experts_of_deepseek_equal_whole_ones_on_as_many_ranks(rank_processes, moe):
    copies, sharded = (
        rank_processes.trained(
            "grpo",
            2,
            f"deepseek_v3 {sharding}",
            overrides={**fields(moe["deepseek_v3"]), "policy.sharding": sharding},
            kernels=False,
        )
        for sharding in ("None", *FSDP2.values())
    )
    assert copies.metrics[0]["router/replayed_frac"] == 1.0
    assert_same_training(sharded, copies)


def test_one_process_differs_from_ranks_by_the_rounding_of_deepseeks_router(rank_processes, moe):
    model = moe["deepseek_v3"]
    step = {**fields(model), "max_steps": "1", "optimizer": "SGD()"}
    whole, sharded = trained_whole_and_sharded(rank_processes, "grpo", "deepseek_v3 step", **step)
    start = load_file(Path(model) / "model.safetensors")
    routers = [name for name in whole.weights if name.endswith("mlp.gate.weight")]
    assert len(routers) == 2
    for name in routers:  # each of two sums over n tokens in float32 has an error of n * 2**-24
        change = whole.weights[name] - start[name].double()
        difference = sharded.weights.pop(name) - whole.weights.pop(name)
        assert difference.norm() < 2 * TOKENS * 2**-24 * change.norm()
    assert largest_difference(sharded.weights, whole.weights) < 1e-10
