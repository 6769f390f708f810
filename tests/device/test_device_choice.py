"""The device of a policy: its name, that of a rank, and its number formats."""

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grupo.kernels.float32_precision import full_float32
from grupo.models import devices
from grupo.models.token_statistics import logits_per_chunk_of
from grupo.training.ranks import check_ranks
from grupo.util.errors import ConfigError
from tests.helpers import training_recipes


@pytest.fixture
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")


@pytest.mark.usefixtures("four_gpus")
@pytest.mark.parametrize(
    ("name", "local_rank", "expected"),
    [
        ("auto", "", "cuda:0"),
        ("auto", "2", "cuda:2"),
        ("cuda", "3", "cuda:3"),
        ("cuda:1", "3", "cuda:1"),
        ("cpu", "1", "cpu"),
    ],
)
def test_a_rank_takes_the_gpu_of_its_number(name, local_rank, expected, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    assert devices.resolve_device(name) == torch.device(expected)


def test_a_process_that_sees_one_gpu_takes_it_whatever_its_rank(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert devices.resolve_device("auto") == torch.device("cuda:0")


@pytest.mark.usefixtures("four_gpus")
def test_a_missing_gpu_is_named_with_those_that_exist():
    with pytest.raises(ConfigError, match=r"device: 'cuda:4' is not available.*cuda:3"):
        devices.resolve_device("cuda:4")


@pytest.mark.usefixtures("four_gpus")
def test_cublas_has_fixed_workspaces_unless_the_user_chose_others(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    devices.resolve_device("cuda")
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    devices.resolve_device("cpu")
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    devices.resolve_device("cuda")
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.parametrize("api", ["fp32_precision", "allow_tf32"])
def test_trials_multiply_float32_in_full_precision_and_restore_the_users_choice(api, monkeypatch):
    matmul = torch.backends.cuda.matmul
    before = getattr(matmul, api)
    setattr(matmul, api, {"fp32_precision": "tf32", "allow_tf32": True}[api])
    chosen = getattr(matmul, api)
    try:
        with full_float32():
            assert matmul.fp32_precision == "ieee"
        assert getattr(matmul, api) == chosen
    finally:
        setattr(matmul, api, before)


def test_several_ranks_cannot_share_one_gpu():
    recipe = training_recipes.recipe("roles", "model")
    main = replace(recipe.policy.main_policy, device="cuda:1")
    ranks: Any = SimpleNamespace(size=2)
    with pytest.raises(ConfigError, match="device: 'cuda:1', which all 2 ranks would share"):
        check_ranks(recipe.replace(policy=replace(recipe.policy, main_policy=main)), ranks)


@pytest.mark.parametrize(
    ("device", "gigabytes", "bits"),
    [("cuda", 141, 29), ("cuda", 80, 28), ("cuda", 8, 25), ("cpu", 141, 25)],
)
def test_a_large_gpu_computes_many_logits_at_once(device, gigabytes, bits, monkeypatch):
    memory = SimpleNamespace(total_memory=gigabytes * 10**9)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda device: memory)
    assert logits_per_chunk_of(torch.device(device)) == 1 << bits
