"""Adapters alone on two real vLLM servers; `GRUPO_VLLM_PYTHON` names their interpreter."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.inference.base import generate_all
from grupo.inference.vllm import Vllm
from grupo.models import adapters
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from tests.helpers import tiny_lm
from tests.helpers.real_vllm import (
    RealServers,
    answered_requests,
    logp_errors,
    requests_of,
    weights_versions,
)

PYTHON = os.environ.get("GRUPO_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="GRUPO_VLLM_PYTHON names no interpreter with vLLM"),
]

OPTIONS = ("--enforce-eager", "--no-enable-chunked-prefill", "--max-num-seqs", "64")
FAMILIES = {"llama": {}, "qwen3": {"tie_word_embeddings": True}}
REQUESTS = requests_of(40)


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("user") / "model"
    options = {"head_dim": 32, "max_position_embeddings": 512, **FAMILIES[request.param]}
    return tiny_lm.save_model(place, request.param, **options)


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[RealServers]:
    started = RealServers(PYTHON, str(folder), 2, *OPTIONS, lora_rank=6)
    try:
        started.wait_until_healthy()
        yield started
    finally:
        started.end()


def policy_of(folder: Path, servers: RealServers, **options: Any) -> CausalPolicy:
    engine = Vllm(servers.urls, request_timeout=120.0, **options)
    spec = CausalLM(str(folder), lora=Lora(6, 9.0), engine=engine, max_new_tokens=24, device="cpu")
    return spec.build()


@torch.no_grad()
def update(policy: CausalPolicy, seed: int) -> None:
    """Give the adapter random matrices, and the servers the adapter."""
    generator = torch.Generator().manual_seed(seed)
    for matrix in adapters.adapter_weights(policy.module).values():
        matrix.normal_(0, 0.3, generator=generator)
    policy.sync_weights(policy.weight_sync.snapshot(), seed)


def largest_error(policy: CausalPolicy, weights: Any) -> float:
    """Of the servers' log-probabilities, against transformers with these weights."""
    replies = generate_all(policy.weight_sync.engine(), REQUESTS)
    model = AutoModelForCausalLM.from_config(policy.hf_model.config, dtype=torch.float32)
    model.set_attn_implementation("eager")
    model.load_state_dict(weights)
    return float(logp_errors(model.eval(), REQUESTS, replies).max())


@pytest.mark.parametrize("transfer", ["file", "gloo", "ipc"])
def test_logp_is_that_of_the_policy_after_each_update(folder, servers, transfer):
    policy = policy_of(folder, servers, weight_transfer=transfer)
    before = list(map(answered_requests, servers.urls))
    errors = []
    for seed in range(3):
        update(policy, seed)
        errors.append(largest_error(policy, policy.merged_model().state_dict()))
    assert policy.weight_sync.sends_adapters
    assert max(errors) < 1e-3
    base = adapters.base_weights(policy.module)
    assert largest_error(policy, base) > 0.1  # the adapter changes the distribution
    after = list(map(answered_requests, servers.urls))
    assert min(a - b for a, b in zip(after, before, strict=True)) > 0  # both have answered
    assert set.union(*map(weights_versions, servers.urls)) == {
        policy.weight_sync.engine().weights.base.version
    }
    policy.weight_sync.close()


def test_weights_below_the_adapter_are_those_of_the_policy(folder, servers):
    policy = policy_of(folder, servers)
    with torch.no_grad():
        for name, weight in policy.hf_model.named_parameters():
            if "lora" not in name:
                weight.mul_(0.9)
    update(policy, 1)
    assert largest_error(policy, policy.merged_model().state_dict()) < 1e-3
    policy.weight_sync.close()


def test_the_scale_of_rank_stabilized_adapters_is_applied(folder, servers):
    policy = policy_of(folder, servers)
    config = policy.module.peft_config["default"]
    config.use_rslora = True
    for layer in policy.module.modules():
        if isinstance(getattr(layer, "scaling", None), dict):
            layer.scaling["default"] = 9.0 / 6**0.5
    update(policy, 2)
    assert largest_error(policy, policy.merged_model().state_dict()) < 1e-3
    policy.weight_sync.close()


def test_a_killed_server_that_is_started_again_gets_the_adapter(folder, servers):
    policy = policy_of(folder, servers)
    update(policy, 3)
    os.kill(servers.processes()["EngineCore"], signal.SIGKILL)
    assert largest_error(policy, policy.merged_model().state_dict()) < 1e-3  # of the other one
    servers.wait_until_restarted()
    update(policy, 4)
    assert answered_requests(servers.urls[0]) == 0
    assert largest_error(policy, policy.merged_model().state_dict()) < 1e-3
    assert answered_requests(servers.urls[0]) > 0
    policy.weight_sync.close()
