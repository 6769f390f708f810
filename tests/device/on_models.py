"""Models, optimizers, teachers and judges on simulated CUDA devices, also on two of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grupo.algo.losses import KL, Clip
from grupo.algo.optimizers import SGD, Adafactor, Adam, Muon
from grupo.config.time_estimate import measure_speed
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.loaded import LoadedModel
from grupo.models.lora import Lora
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.rewards import LocalModel
from grupo.training.learner import Learner
from grupo.training.start import run_training
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm, training_recipes
from tests.helpers.fast_cases import fast_cases
from tests.helpers.recurrent_model import RECURRENT, save_random_model
from tests.helpers.tiny_lm import FAMILIES, TEMPLATE
from tests.helpers.training_components import save_models

pytestmark = pytest.mark.slow

GPU = {"device": "cuda", "max_new_tokens": 6}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


def recipe(models: str, name: str = "grpo", **changes: Any) -> Any:
    """A recipe of two steps on the first GPU."""
    plain = training_recipes.recipe(name, models)
    policy = CausalLM(models, **GPU)
    return plain.replace(**{"policy": policy, "max_steps": 2, "save_every": 1, **changes})


@pytest.mark.parametrize("family", fast_cases({"qwen3", "gemma3"}, [*FAMILIES, *RECURRENT]))
def test_every_family_evaluates_what_it_generates(family, tmp_path):
    config = {**FAMILIES, **RECURRENT}[family]()
    policy = CausalLM(save_random_model(tmp_path / family, config), **GPU).build()
    batch = tiny_lm.answer_batch(policy)
    signals = policy.signals(batch)
    assert torch.allclose(signals.logp.detach().cpu(), batch.old_logp, atol=1e-3)
    signals.logp.sum().backward()


@pytest.mark.parametrize("optimizer", [SGD(0.9), Adam(), Adafactor(), Muon()], ids=repr)
def test_optimizers_keep_their_state_beside_the_weights(optimizer, models, tmp_path):
    learner = Learner(recipe(models, optimizer=optimizer))
    learner.step()
    for state in learner.state.optimizers["optimizer"].state.values():
        tensors = [x for x in state.values() if isinstance(x, torch.Tensor) and x.dim()]
        assert all(x.is_cuda for x in tensors)
    learner.close()


def test_a_model_in_memory_is_trained_on_the_gpu_of_the_policy(models, tmp_path):
    model = AutoModelForCausalLM.from_pretrained(models)
    spec = CausalLM(LoadedModel(model, AutoTokenizer.from_pretrained(models)), **GPU)
    run_training(recipe(models, policy=spec), tmp_path / "run")
    assert model.device == torch.device("cuda:0")


def test_a_teacher_may_live_on_another_gpu(models, tmp_path):
    teacher = AuxModel("teacher", CausalLM(models, device="cuda:1", max_new_tokens=6))
    method = training_recipes.METHOD.replace(loss=Clip() + 0.5 * KL(other_policy="teacher"))
    run_training(recipe(models, method=method, aux_models=(teacher,)), tmp_path / "run")


def test_policies_of_two_roles_may_live_on_two_gpus(models, tmp_path):
    hinter = CausalLM(models, Lora(2, 4.0), device="cuda:1", max_new_tokens=4)
    policy = MultiPolicy(CausalLM(models, **GPU), (RolePolicy("hinter", hinter),))
    learner = Learner(recipe(models, "roles", policy=policy))
    learner.step()
    assert {str(p.device) for p in learner.policy.parameters()} == {"cuda:0", "cuda:1"}
    learner.close()


@pytest.mark.parametrize(
    "changes", fast_cases(1, [{"dtype": "bfloat16"}, {"gradient_checkpointing": True}])
)
def test_adapters_are_trained_and_exported_from_a_gpu(changes, models, tmp_path):
    spec = replace(CausalLM(models, Lora(2, 4.0), **GPU), **changes)
    run_training(recipe(models, policy=spec), tmp_path / "run")
    policy = spec.build()
    policy.export(tmp_path / "export")
    exported = CausalLM(str(tmp_path / "export"), device="cpu", max_new_tokens=6).build()
    assert len(exported.weights()) > 0


def test_a_judge_may_live_on_another_gpu(tmp_path: Path):
    options = {"chat_template": TEMPLATE}
    folder = str(tiny_lm.save_model(tmp_path, tokenizer_options=options))
    judge = LocalModel(folder, dtype="float32", device="cuda:1", max_tokens=8)
    (reply,) = run_coroutine(judge.complete([({"role": "user", "content": "Good?"},)]))
    assert 0 < reply.completion_tokens <= 8


def test_the_speed_of_a_gpu_is_measured():
    assert measure_speed(torch.device("cuda"), torch.float32)
