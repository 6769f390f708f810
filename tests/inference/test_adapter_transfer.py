"""Adapters alone for servers: what is sent, and where all weights are sent instead."""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from grupo.inference.base import generate_all
from grupo.inference.engine_errors import EngineError
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import VllmEngine
from grupo.inference.vllm_worker import WeightLoaderExtension
from grupo.inference.vllm_worker.extension import without_adapters
from grupo.inference.vllm_worker.shared_memory import place_of
from grupo.inference.weight_transfer import FileTransfer, checksum, publish_adapter
from grupo.models import adapters
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from grupo.util.errors import ConfigError
from tests.helpers import fake_vllm, tiny_lm
from tests.helpers.fake_vllm import FakeServer
from tests.helpers.fast_cases import fast_cases
from tests.helpers.vllm_fixtures import REQUESTS, WEIGHTS

LORA = Lora(2, 6.0)
REASON = "Adapters are merged into all weights for each update of the servers: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_lm.save_model(tmp_path_factory.mktemp("llama"), tie_word_embeddings=True))


@pytest.fixture
def fakes() -> Iterator[list[FakeServer]]:
    servers = [FakeServer() for _ in range(2)]
    yield servers
    for server in servers:
        server.stop()


def policy_of(folder: str, fakes: list[FakeServer], **options: Any) -> CausalPolicy:
    engine = Vllm(tuple(fake.url for fake in fakes), request_timeout=10.0, **options)
    return CausalLM(folder, lora=LORA, engine=engine, max_new_tokens=12, device="cpu").build()


def engine_of(policy: CausalPolicy) -> VllmEngine:
    engine = policy.weight_sync.engine()
    assert isinstance(engine, VllmEngine)
    return engine


def update(policy: CausalPolicy, value: float) -> str:
    """Set all matrices of the adapter to a value and sync; returns the version."""
    for matrix in adapters.adapter_weights(policy.module).values():
        matrix.fill_(value)
    policy.sync_weights(policy.weight_sync.snapshot(), 1)
    return engine_of(policy).weights_version


def generate(policy: CausalPolicy) -> None:
    assert all(reply.tokens for reply in generate_all(policy.weight_sync.engine(), REQUESTS))


def bodies(fakes: list[FakeServer]) -> list[dict[str, Any]]:
    return [body for fake in fakes for body in fake.completion_bodies]


@pytest.mark.parametrize("transfer", fast_cases(1, ["file", "gloo", "ipc"]))
def test_servers_get_the_base_once_and_the_adapter_at_each_update(folder, fakes, transfer):
    for fake in fakes:
        fake.facts["place"] = place_of(torch.device("cpu"))
    policy = policy_of(folder, fakes, weight_transfer=transfer)
    versions = [update(policy, value) for value in (0.5, 0.25, 0.25)]
    assert versions[0] != versions[1] == versions[2]
    one_update = ["keep adapter", "load adapter"]
    assert [fake.calls for fake in fakes] == [["load", *one_update, *one_update]] * 2
    generate(policy)
    named = {(body["model"], body["cache_salt"]) for body in bodies(fakes)}
    assert named == {(versions[1], versions[1])}
    assert [fake.adapter_names for fake in fakes] == [[versions[1]]] * 2
    policy.weight_sync.close()


def test_the_base_is_the_model_in_its_folder(folder, fakes):
    policy = policy_of(folder, fakes)
    update(policy, 0.5)
    base = CausalLM(folder, max_new_tokens=12, device="cpu").build().module.state_dict()
    assert {fake.version for fake in fakes} == {checksum(base)}
    modules = {name.rpartition(".")[2] for name in fakes[0].checked_modules}
    attention = {f"{letter}_proj" for letter in "qkvo"}
    assert modules == {*attention, "gate_proj", "up_proj", "down_proj"}


def test_the_file_of_an_update_holds_the_adapter_alone(folder, fakes):
    policy = policy_of(folder, fakes)
    update(policy, 0.5)
    weights, adapter = engine_of(policy).folder.iterdir()
    sizes = sorted((weights.stat().st_size, adapter.stat().st_size))
    count = sum(x.numel() for x in adapters.adapter_weights(policy.module).values())
    assert count * 4 < sizes[0] < count * 4 + 8192 < sizes[1]


def test_a_restarted_server_gets_the_base_and_the_adapter_before_any_request(folder, fakes):
    policy = policy_of(folder, fakes[:1])
    version = update(policy, 0.5)
    (fake, _) = fakes
    fake.stop()
    fake.calls.clear()
    fake.start(fake.port)
    generate(policy)
    assert fake.calls == ["load", "keep adapter", "load adapter"]
    assert {body["model"] for body in fake.completion_bodies} == {version}


@pytest.mark.slow
def test_an_adapter_that_requests_cannot_name_is_loaded_again(folder, fakes):
    policy = policy_of(folder, fakes[:1])
    version = update(policy, 0.5)
    fakes[0].adapter_names = ["another"]
    generate(policy)
    assert fakes[0].adapter_names == [version]


def test_a_server_that_slept_gets_the_base_and_the_adapter_again(folder, fakes):
    policy = policy_of(folder, fakes[:1], sleep=True)
    update(policy, 0.5)
    policy.weight_sync.release_memory()
    fakes[0].calls.clear()
    version = update(policy, 0.5)
    loading = ["load", "keep adapter", "load adapter"]
    assert fakes[0].calls == ["/wake_up?tags=weights", *loading, "/wake_up?tags=kv_cache"]
    assert fakes[0].adapter_names == [version]


@pytest.mark.slow
def test_merged_weights_are_sent_if_one_server_cannot_apply_the_adapter(folder, fakes, caplog):
    fakes[1].adapter_problem = "it runs without --enable-lora"
    policy = policy_of(folder, fakes)
    versions = [update(policy, value) for value in (0.5, 0.25)]
    assert versions[1] == checksum(policy.merged_model().state_dict())
    assert [fake.loaded_versions for fake in fakes] == [versions, versions]
    generate(policy)
    assert all("model" not in body for body in bodies(fakes))
    messages = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert messages == [
        f"{REASON}vllm at {fakes[1].url} cannot apply them alone, because it runs without"
        " --enable-lora."
    ]


def test_adapters_are_merged_without_a_warning_where_the_recipe_says_so(folder, fakes, caplog):
    policy = policy_of(folder, fakes, adapters=False)
    assert update(policy, 0.5) == checksum(policy.merged_model().state_dict())
    assert [fake.calls for fake in fakes] == [["load"]] * 2
    assert caplog.text == ""


def test_merged_weights_are_sent_if_more_than_matrices_are_trained(folder, fakes, caplog):
    policy = policy_of(folder, fakes)
    name, norm = next((n, p) for n, p in policy.module.named_parameters() if "norm" in n)
    norm.requires_grad_(True)
    assert update(policy, 0.5) == checksum(policy.merged_model().state_dict())
    assert f"{REASON}{name} is trained, too." in caplog.text


@pytest.mark.slow
def test_a_started_server_runs_without_lora_if_vllm_has_none_for_the_model(
    folder, tmp_path, monkeypatch, caplog
):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_vllm.__file__}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "pids").write_text("")
    monkeypatch.setenv("FAKE_PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("FAKE_NO_LORA", "1")
    engine = Vllm(python=str(python))
    spec = CausalLM(folder, lora=LORA, engine=engine, max_new_tokens=12, device="cpu")
    policy = spec.build()
    assert update(policy, 0.5) == checksum(policy.merged_model().state_dict())
    assert f"{REASON}vLLM does not support LoRA for this model." in caplog.text
    policy.weight_sync.close()


def test_an_error_of_the_check_is_sent_to_the_other_ranks(folder, fakes):
    fakes[0].facts["dtype"] = "float16"
    policy = policy_of(folder, fakes)
    sent = []
    policy.weight_sync.share_servers(SimpleNamespace(is_sender=True, send_error=sent.append))
    with pytest.raises(ConfigError, match="dtype is 'float16'"):
        policy.weight_sync.snapshot()
    assert str(*sent).startswith(f"vllm at {fakes[0].url}: dtype")


def test_an_adapter_that_arrives_with_other_bits_ends_the_run(folder, fakes, monkeypatch):
    policy = policy_of(folder, fakes[:1])
    fakes[0].keep_adapter = lambda method, args: {"version": "0" * 32}
    with pytest.raises(EngineError, match="loaded other weights than were written"):
        update(policy, 0.5)
    assert fakes[0].adapter_names == []


def test_the_version_covers_the_settings_and_the_weights_below(tmp_path):
    transfer = FileTransfer(tmp_path / "adapter.safetensors", torch.float32)
    other = FileTransfer(tmp_path / "weights.safetensors", torch.float32)
    base, changed = (other.publish({"w": torch.full((2,), x)}) for x in (1.0, 2.0))
    settings = {"r": 2, "lora_alpha": 4.0}
    versions = {
        publish_adapter(transfer, WEIGHTS, settings, base).version,
        publish_adapter(transfer, WEIGHTS, settings | {"lora_alpha": 8.0}, base).version,
        publish_adapter(transfer, WEIGHTS, settings, changed).version,
    }
    assert len(versions) == 3


def test_names_and_settings_are_those_of_peft(folder):
    from peft import get_peft_model_state_dict

    module: Any = CausalLM(folder, lora=LORA, max_new_tokens=12, device="cpu").build().module
    expected = get_peft_model_state_dict(module)
    own = adapters.adapter_weights(module)
    assert own.keys() == expected.keys()
    assert all(torch.equal(own[name], expected[name]) for name in own)
    settings = adapters.adapter_settings(module)
    assert (settings["r"], settings["lora_alpha"], settings["use_rslora"]) == (2, 6.0, False)
    projections = {f"{letter}_proj" for letter in ("q", "k", "v", "o", "gate", "up", "down")}
    assert set(settings["target_modules"]) == projections
    assert json.loads(json.dumps(settings)) == settings


class Worker(WeightLoaderExtension):
    """A worker with an adapter manager that loads nothing by itself."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.grupo_version = "base"
        self.model_runner = SimpleNamespace(lora_manager=SimpleNamespace())


def kept(worker: Worker, file: Path, base: str = "base", value: float = 1.0) -> dict[str, str]:
    published = publish_adapter(
        FileTransfer(file, torch.float32),
        {"a": torch.full((2,), value)},
        {"r": 2},
        replace(FileTransfer(file, torch.float32).publish({}), version=base),
    )
    return worker.grupo_load_adapter(*published.args, published.version)


def test_a_worker_keeps_the_last_two_adapters_for_requests_of_vllm(tmp_path):
    worker = Worker()
    versions = [kept(worker, tmp_path / "a", value=x)["version"] for x in (1.0, 2.0, 3.0, 3.0)]
    assert list(worker.grupo_adapters) == versions[1:3]
    assert worker.grupo_adapter == ""  # until vLLM has taken one
    assert worker.model_runner.lora_manager._load_adapter == worker._grupo_adapter_model


def test_a_worker_with_other_weights_takes_no_adapter(tmp_path):
    worker = Worker()
    result = kept(worker, tmp_path / "a", base="another")
    assert result == {"interrupted": "the worker holds weights base, not another"}


class Wrapped(nn.Module):
    """A layer with adapters as vLLM has it."""

    def __init__(self, base_layer: nn.Module) -> None:
        super().__init__()
        self.base_layer = base_layer


def test_weights_are_loaded_into_the_layers_below_adapters():
    model = nn.Sequential(Wrapped(nn.Linear(2, 2)), nn.ModuleList([Wrapped(nn.Linear(2, 3))]))
    layers = [model[0], model[1][0]]
    with without_adapters(model):
        names = [name for name, _ in model.named_parameters()]
    assert names == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert [model[0], model[1][0]] == layers
