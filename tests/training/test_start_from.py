"""Policies that start from the weights of a run or from adapters of peft."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from grupo.algo.losses import KL, Clip
from grupo.models.lora import Lora
from grupo.recipe import Recipe
from grupo.training.callbacks import NullCallback
from grupo.training.resume.load_run import load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.start_from import describe_start, with_model
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from tests.helpers import training_components
from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import differences, flip_bit, outcome
from tests.helpers.training_recipes import METHOD, base

LORA = Lora(2, 4.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a run of all weights, a run of adapters on top of it, and these adapters."""
    root = tmp_path_factory.mktemp("start")
    training_components.save_models(root / "model")
    recipe = base(str(root / "model")).replace(max_steps=2, save_every=1)
    run_training(recipe, root / "full")
    run_training(with_lora(with_model(recipe, str(root / "full"))), root / "stacked")
    run_training(with_lora(recipe), root / "lora")
    load_policy(root / "lora")[0].export(root / "adapters", merge=False)
    return root


@pytest.fixture
def recipe(folder) -> Recipe:
    return base(str(folder / "model")).replace(max_steps=2, save_every=1)


def with_lora(recipe: Recipe, lora: Lora | None = LORA) -> Recipe:
    return recipe.replace(policy=replace(recipe.policy, lora=lora))


def merged_weights(recipe: Recipe) -> dict[str, torch.Tensor]:
    return dict(recipe.policy.build().merged_model().state_dict())


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return dict(load_policy(run)[0].merged_model().state_dict())


def assert_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert set(first) == set(second)
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", fast_cases(1, ["full", "lora", "stacked", "adapters"]))
def test_a_policy_of_all_weights_starts_from_those_of_the_run(name, folder, recipe):
    trained = weights_of(folder / ("lora" if name == "adapters" else name))
    started = with_model(recipe, str(folder / name))
    assert_equal(merged_weights(started), trained)
    untrained = merged_weights(recipe)
    assert any(not torch.equal(untrained[n], trained[n]) for n in trained)
    assert len(started.policy.build().parameters()) == len(recipe.policy.build().parameters())


@pytest.mark.parametrize("name", fast_cases(1, ["lora", "stacked", "adapters"]))
def test_adapters_are_trained_further_with_the_same_lora(name, folder, recipe):
    started = with_model(recipe, str(folder / name))
    started = with_lora(started, started.policy.start.lora)
    policy = started.policy.build()
    trained, _ = load_policy(folder / ("lora" if name == "adapters" else name))
    assert_equal(dict(policy.weights()), dict(trained.weights()))
    assert_equal(merged_weights(started), dict(trained.merged_model().state_dict()))


@pytest.mark.parametrize("name", ["full", "lora"])
def test_the_reference_is_the_start(name, folder, recipe, tmp_path):
    started = with_lora(with_model(recipe, str(folder / name)))
    kl = started.replace(method=METHOD.replace(loss=Clip() + 0.5 * KL()), eval_tasks=0)
    run_training(kl.replace(evaluation=replace(kl.evaluation, every=0)), tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    first, second = (json.loads(line)["policy/kl_ref"] for line in lines)
    assert abs(first) < 1e-6 < second


def test_an_earlier_and_the_best_checkpoint_of_a_run_can_be_the_start(folder, recipe):
    started = with_model(recipe, f"{folder / 'full'}@1").policy.start
    assert "step-00000001/" in started.file
    assert "step-00000002" in with_model(recipe, f"{folder / 'full'}@best").policy.start.file
    with pytest.raises(ConfigError, match=r"has none of step 7\. Allowed: .* the steps 1, 2\."):
        with_model(recipe, f"{folder / 'full'}@7")


def test_the_line_about_the_start_says_what_is_trained(folder, recipe):
    merged = with_model(recipe, str(folder / "lora"))
    assert describe_start(merged.policy).endswith(
        "its adapters Lora(rank=2, alpha=4.0, targets='all-linear') are merged into the model, and"
        " all weights are trained. --policy.lora \"Lora(rank=2, alpha=4.0, targets='all-linear')\""
        " trains the adapters further instead."
    )
    assert describe_start(with_lora(merged).policy).endswith("are trained further.")
    full = with_model(recipe, str(folder / "full"))
    assert describe_start(full.policy).endswith("all weights are trained.")
    assert "new adapters Lora(" in describe_start(with_lora(full).policy)
    assert describe_start(recipe.policy) == ""


class StopAfterOneStep(NullCallback):
    def on_step_end(self, step, metrics):
        raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("lora", fast_cases(1, [None, LORA]))
def test_a_run_with_start_weights_resumes_with_the_same_bits(lora, folder, recipe, tmp_path):
    started = with_lora(with_model(recipe, str(folder / "lora")), lora)
    run_training(started, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_training(started, tmp_path / "run", StopAfterOneStep())
    resume_training(tmp_path / "run")
    assert differences(outcome(tmp_path / "whole"), outcome(tmp_path / "run")) == []


@pytest.mark.slow
def test_a_run_whose_start_weights_changed_is_not_resumed(folder, recipe, tmp_path):
    source = shutil.copytree(folder / "full", tmp_path / "source")
    with pytest.raises(KeyboardInterrupt):
        run_training(with_model(recipe, str(source)), tmp_path / "run", StopAfterOneStep())
    weights = Path(RunFolder.open(tmp_path / "run").recipe.policy.start.file)
    flip_bit(weights)
    with pytest.raises(ConfigError, match=r"is not the file that the recipe names: its SHA-256"):
        resume_training(tmp_path / "run")
    weights.unlink()
    with pytest.raises(ConfigError, match=r"cannot be read: No such file or directory\. A run"):
        resume_training(tmp_path / "run")


def test_other_adapters_than_those_of_the_start_are_refused(folder, recipe):
    started = with_lora(with_model(recipe, str(folder / "lora")), Lora(3, 4.0))
    with pytest.raises(ConfigError, match=r"policy.lora: Lora\(rank=3.* are Lora\(rank=2") as error:
        started.policy.check()
    assert "or None, which merges them into the model" in str(error.value)


@pytest.mark.slow
def test_weights_of_another_model_are_refused(folder, recipe, tmp_path):
    other = replace(recipe.policy, model=str(folder / "model" / training_components.WIDE))
    start = with_model(recipe, str(folder / "full")).policy.start
    with pytest.raises(ConfigError, match=r"policy.start: '.*' in .* Allowed: weights of the same"):
        replace(other, start=start).build()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use_dora": True}, "are LORA with use_dora. Allowed: plain LoRA."),
        ({"peft_type": "IA3"}, "are IA3 with bias. Allowed: plain LoRA."),
        ({"r": None}, "is no configuration of LoRA adapters: a field is empty"),
        ({"r": 10**18}, "Lora.rank: 1000000000000000000. Allowed: at most 65,536."),
        ({"target_modules": [1, "a"]}, "Lora.targets: (1, 'a'). Allowed: a string or a tuple"),
        ({"target_modules": 5}, "Lora.targets: 5. Allowed: a string or a tuple"),
        ({"lora_alpha": "abc"}, "Lora.alpha: 'abc'. Allowed: a number."),
        ({"lora_alpha": 10**400}, "Lora.alpha: a whole number of about 401 digits. Allowed: at mo"),
        ({"base_model_name_or_path": ["a"]}, "CausalLM.model: ['a']. Allowed: a string"),
        (json.loads('{"a":' * 500 + "0" + "}" * 500), "nested too deep to read. Allowed: at most"),
    ],
)
def test_adapters_that_are_no_plain_lora_are_refused(change, message, folder, recipe, tmp_path):
    adapters = shutil.copytree(folder / "adapters", tmp_path / "adapters")
    config = json.loads((adapters / "adapter_config.json").read_text())
    (adapters / "adapter_config.json").write_text(json.dumps(config | change))
    with pytest.raises(ConfigError) as error:
        with_model(recipe, str(adapters))
    assert message in str(error.value)
    (adapters / "adapter_model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"has no adapter_model\.safetensors"):
        with_model(recipe, str(adapters))


def header(fields: object) -> bytes:
    """A safetensors file with this header and four bytes of data."""
    text = json.dumps(fields).encode()
    return len(text).to_bytes(8, "little") + text + bytes(4)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        (2**60).to_bytes(8, "little") + b"{}",
        header([]),
        header({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]}}),
        header({"a": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}}),
        header({k: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for k in "ab"}),
    ],
)
def test_weights_of_adapters_with_a_header_that_lies_are_one_error(
    content, folder, recipe, tmp_path
):
    adapters = shutil.copytree(folder / "adapters", tmp_path / "adapters")
    (adapters / "adapter_model.safetensors").write_bytes(content)
    started = with_model(recipe, str(adapters))
    with pytest.raises(
        ConfigError, match=r"policy\.start: '.*/adapter_model\.safetensors' is no safetensors file"
    ):
        started.policy.build()


@pytest.mark.parametrize("change", [lambda w: w * torch.nan, lambda w: w.long()])
def test_weights_of_adapters_that_are_no_finite_numbers_are_refused(
    change, folder, recipe, tmp_path
):
    adapters = shutil.copytree(folder / "adapters", tmp_path / "adapters")
    file = adapters / "adapter_model.safetensors"
    save_file({name: change(weight) for name, weight in load_file(file).items()}, file)
    with pytest.raises(ConfigError, match=r"lora_.* that are no weights\. Allowed: finite float"):
        with_model(recipe, str(adapters)).policy.build()
