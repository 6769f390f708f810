"""FSDP2 trains a mixture of experts to the same numbers as one process does."""

import pytest
import torch
from transformers import OlmoeConfig, OlmoeForCausalLM

from grupo.toy.tokenizers import phrase_tokenizer
from tests.distributed.test_sharding import assert_same_training, trained_whole_and_sharded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def olmoe(tmp_path_factory):
    """Folder of a model of two layers with eight experts each."""
    folder = tmp_path_factory.mktemp("olmoe")
    tokenizer = phrase_tokenizer([])
    torch.manual_seed(3)
    config = OlmoeConfig(
        vocab_size=len(tokenizer),
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=0,
        hidden_size=24,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_experts=8,
        num_experts_per_tok=2,
        max_position_embeddings=32,
        initializer_range=0.3,
    )
    OlmoeForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("recipe", ["grpo", "lora"])
def test_sharded_experts_equal_whole_ones(rank_processes, olmoe, recipe):
    fields = {
        "policy.model": repr(olmoe),
        "policy.router_aux_loss": "0.1",
        "policy.router_replay": "True",
        "policy.tokens_per_microbatch": "24",
    }
    whole, sharded = trained_whole_and_sharded(rank_processes, recipe, "experts", **fields)
    assert whole.metrics[0]["router/replayed_frac"] == 1.0
    assert_same_training(sharded, whole)
