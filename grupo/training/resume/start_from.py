"""Recipes whose policy starts from the weights of a run or from adapters that peft wrote."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo.config.overrides import apply_overrides
from grupo.core.component import component_fields
from grupo.models.base import PolicySpec
from grupo.models.causal_lm import CausalLM
from grupo.models.config_file import check_model_name, reads_media
from grupo.models.loaded import UNSUPPORTED_LORA_FIELDS
from grupo.models.lora import Lora
from grupo.models.start_weights import StartWeights
from grupo.models.vision_lm import VisionLM
from grupo.models.weight_files import SAFE_ADAPTERS
from grupo.recipe import Recipe
from grupo.storage.atomic_files import sha256_of
from grupo.training.resume.load_run import LAST, find_checkpoint
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json, read_limited
from grupo.util.run_files import RECIPE_JSON

ADAPTER_CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "weights.safetensors"


def with_model(recipe: Recipe, model: str) -> Recipe:
    """The recipe with another model: a folder, a name on the hub, a run, or a folder of adapters.

    Args:
        recipe: The recipe; a policy that starts from a run or adapters must be a `CausalLM`.
        model: A model as for `policy.model`, a folder with adapters of peft, or a run. `RUN` is the
            newest checkpoint, `RUN@best` the best one, and `RUN@STEP` the one of a step.

    Raises:
        ConfigError: `model` names no folder, or the policy cannot start from its contents.
    """
    check_model_name(model)
    run, separator, choice = model.rpartition("@")
    if separator and not Path(model).exists() and (Path(run) / RECIPE_JSON).is_file():
        return recipe.replace(policy=_from_run(recipe.policy, Path(run), choice))
    folder = Path(model)
    if (folder / RECIPE_JSON).is_file():
        return recipe.replace(policy=_from_run(recipe.policy, folder, LAST))
    if (folder / ADAPTER_CONFIG_FILE).is_file() and not (folder / "config.json").is_file():
        return recipe.replace(policy=_from_adapters(recipe.policy, folder))
    if type(recipe.policy) is CausalLM and reads_media(model):
        recipe = recipe.replace(policy=VisionLM(**component_fields(recipe.policy)))
    return apply_overrides(recipe, [("policy.model", model)])


def describe_start(policy: PolicySpec) -> str:
    """A line about the start weights of a policy and its trained weights; "" if it has no start."""
    if not isinstance(policy, CausalLM) or not (start := policy.start):
        return ""
    source = f"The policy starts from {start.file} on {policy.model}"
    if not start.lora:
        trained = f"new adapters {policy.lora!r} are trained" if policy.lora else ""
        return f"{source}: {trained or 'all weights are trained'}."
    if policy.lora:
        return f"{source}: its adapters {start.lora!r} are trained further."
    return (
        f"{source}: its adapters {start.lora!r} are merged into the model, and all weights are"
        f' trained. --policy.lora "{start.lora!r}" trains the adapters further instead.'
    )


def _from_run(policy: PolicySpec, run: Path, choice: str) -> CausalLM:
    """The policy with the weights of a run's checkpoint."""
    run_recipe = RunFolder.open(run).recipe
    run_policy = run_recipe.policy
    if not isinstance(run_policy, CausalLM):
        name = type(run_policy).__name__
        raise ConfigError(f"model: the run {str(run)!r} trained a {name}. Allowed: a CausalLM.")
    path, digests = find_checkpoint(run, run_recipe, choice)
    run_start = run_policy.start
    base = None  # weights to which the adapters of the run are added, if not those of the model
    if run_policy.lora and run_start:
        base = run_start.base if run_start.lora else run_start
    weights = StartWeights(str(path / WEIGHTS_FILE), digests[WEIGHTS_FILE], run_policy.lora, base)
    if not isinstance(run_policy.model, str):
        raise ConfigError(
            f"model: the run {str(run)!r} began with a model in memory, {run_policy.model}."
            " Allowed: a run that began with a model's folder."
        )
    return with_start_weights(policy, run_policy.model, weights)


def _from_adapters(policy: PolicySpec, folder: Path) -> CausalLM:
    """The policy with adapters of peft on the model that their configuration names."""
    file = folder / SAFE_ADAPTERS
    if not file.is_file():
        raise ConfigError(
            f"model: {str(folder)!r} has no {SAFE_ADAPTERS}. Allowed: adapters in safetensors."
        )
    config = _read_config(folder / ADAPTER_CONFIG_FILE)
    unsupported = [name for name in UNSUPPORTED_LORA_FIELDS if config.get(name)]
    if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none" or unsupported:
        raise ConfigError(
            f"model: the adapters in {str(folder)!r} are {config.get('peft_type')} with"
            f" {', '.join(unsupported) or 'bias'}. Allowed: plain LoRA. Merge these with peft"
            " (merge_and_unload) and name the merged model."
        )
    targets = config["target_modules"]
    targets = tuple(sorted(targets, key=str)) if isinstance(targets, list) else targets
    lora = Lora(config["r"], config["lora_alpha"], targets)
    weights = StartWeights(str(file), sha256_of(file), lora)
    return with_start_weights(policy, config["base_model_name_or_path"], weights)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = parse_json(read_limited(path))
        names = ("r", "lora_alpha", "target_modules", "base_model_name_or_path")
        if any(not config[name] for name in names):
            raise ValueError("a field is empty")
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ConfigError(f"model: {path} is no configuration of LoRA adapters: {error}") from error
    return config


def with_start_weights(policy: PolicySpec, model: str, start: StartWeights) -> CausalLM:
    """The policy with another model and start weights, which only a `CausalLM` can have.

    Args:
        policy: The policy.
        model: Folder or hub name of the model that the weights belong to.
        start: The weights.
    """
    if not isinstance(policy, CausalLM):
        name = type(policy).__name__
        raise ConfigError(
            f"model: a {name} cannot start from {start.file!r}. Allowed: a CausalLM, or the folder"
            " that `grupo export` writes."
        )
    return replace(policy, model=model, start=start)
