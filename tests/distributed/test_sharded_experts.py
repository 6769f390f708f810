"""FSDP2 trains mixtures of experts to the same numbers as one process does."""

import pytest

from tests.distributed.test_sharding import assert_same_training, trained_whole_and_sharded
from tests.helpers.moe_models import MOE, save_moe

pytestmark = pytest.mark.slow
# the router of DeepSeek-V3 multiplies in float32, and ranks divide the rows of its matrices
FAMILIES = [family for family in MOE if family != "deepseek_v3"]


@pytest.fixture(scope="module")
def moe(tmp_path_factory):
    """Folder of a model of each family."""
    root = tmp_path_factory.mktemp("moe")
    return {family: save_moe(root / family, family) for family in FAMILIES}


@pytest.mark.parametrize(
    ("family", "recipe"), [*((family, "grpo") for family in FAMILIES), ("gpt_oss", "lora")]
)
def test_sharded_experts_equal_whole_ones(rank_processes, moe, family, recipe):
    fields = {
        "policy.model": repr(moe[family]),
        "policy.router_aux_loss": "0.1",
        "policy.router_replay": "True",
        "policy.tokens_per_microbatch": "24",
    }
    whole, sharded = trained_whole_and_sharded(rank_processes, recipe, family, **fields)
    assert whole.metrics[0]["router/replayed_frac"] == 1.0
    assert_same_training(sharded, whole)
