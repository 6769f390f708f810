"""Mixtures of experts on a real vLLM; `GRUPO_VLLM_PYTHON` names an interpreter that has it."""

import os

import pytest
import torch

from grupo.core.types import Rollout
from grupo.inference.vllm import Vllm
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.moe_models import save_moe
from tests.helpers.tiny_lm import batch_of, generate

PYTHON = os.environ.get("GRUPO_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="GRUPO_VLLM_PYTHON names no interpreter with vLLM"),
]
OPTIONS = ("--no-enable-chunked-prefill", "--max-num-seqs", "16", "--enforce-eager")
CONTEXT = 256
WIDE_HEADS = {  # vLLM takes head sizes from 32 on
    "qwen3_moe": {"head_dim": 32},
    "mixtral": {"head_dim": 32},
    "olmoe": {"num_attention_heads": 1, "num_key_value_heads": 1},
}


def largest_difference(policy: CausalPolicy) -> float:
    """Between the log-probabilities of the server and those of the update, in nats."""
    responses = [response for group in generate(policy) for response in group]
    batch = batch_of(policy, [Rollout((("", response),)) for response in responses])
    with torch.no_grad():
        logp = policy.signals(batch).logp
    return float((logp - batch.old_logp)[batch.mask].abs().max())


@pytest.mark.parametrize("family", WIDE_HEADS)
def test_the_update_computes_the_log_probabilities_of_the_server(tmp_path, family):
    folder = save_moe(
        tmp_path / "model", family, max_position_embeddings=CONTEXT, **WIDE_HEADS[family]
    )
    engine = Vllm(
        python=PYTHON,
        gpu_memory_utilization=0.1,
        server_options=OPTIONS,
        startup_timeout=1800.0,
        request_timeout=600.0,
    )
    policy = CausalLM(folder, max_new_tokens=12, engine=engine).build()
    try:
        for version in (1, 2):
            policy.sync_weights(policy.weight_sync.snapshot(), version)
            assert largest_difference(policy) < 1e-3
            with torch.no_grad():  # routers and experts among them
                for parameter in policy.parameters():
                    parameter += 0.2 * parameter.std() * torch.randn_like(parameter)
    finally:
        policy.weight_sync.close()
