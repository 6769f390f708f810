"""Models and tokenizers from a folder or a hub, or one clear reason why not."""

import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.validation import check_constraints

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
BFLOAT16_WARNING = (
    "This processor has no instructions for bfloat16: it computes in float32, faster."
)
CAUSAL, MASKED = AutoModelForCausalLM, AutoModelForMaskedLM
KIND_NAMES = {CAUSAL: "causal language model", MASKED: "masked language model"}
PIPELINE_INDEX = "model_index.json"  # where diffusers says what a folder holds
LOAD_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError)


@component
class Lora:
    """Low-rank adapters on every linear layer. Hu et al., 2021, arXiv:2106.09685."""

    rank: int = 16
    alpha: float = 32.0
    targets: str | tuple[str, ...] = "all-linear"

    def __post_init__(self) -> None:
        check_constraints(
            [
                ("rank", self.rank, self.rank >= 1, "1 or more"),
                ("alpha", self.alpha, self.alpha > 0, "above 0"),
            ]
        )


def resolve_device(name: str) -> torch.device:
    """The device of that name; `auto` is the first accelerator, or the processor."""
    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    allowed = ["auto", "cpu", *(["cuda", *found] if found else [])]
    if name not in allowed:
        raise ConfigError(f"device: {name!r} is not here. {suggest(name, allowed)}")
    return torch.device((found or ["cpu"])[0] if name == "auto" else name)


def compute_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """What a policy of that `dtype` computes in: nothing that the device would but imitate."""
    return torch.float32 if dtype_warning(dtype, device) else DTYPES[dtype]


def dtype_warning(dtype: str, device: torch.device) -> str:
    """What to say of a device that has no instructions for that; nothing if it has."""
    return BFLOAT16_WARNING if dtype == "bfloat16" and not has_bfloat16(device) else ""


def has_bfloat16(device: torch.device) -> bool:
    """Does the device work with bfloat16 itself?"""
    if device.type != "cpu":
        return True
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def check_model_exists(path: str) -> None:
    """Refuse a model that is not there, neither as a folder nor under that name on the hub."""
    if (Path(path) / PIPELINE_INDEX).is_file():
        return
    _check_folder(path)
    if not Path(path).is_dir():
        try:
            AutoConfig.from_pretrained(path)
        except LOAD_ERRORS as error:
            said = f"{path!r} is no folder, and as a name on the hub it does not load"
            allowed = "a model's folder, or its name on the hub"
            raise ConfigError(f"model: {said}: {_first_line(error)} Allowed: {allowed}.") from error


def load(
    path: str, dtype: torch.dtype, device: torch.device, kind: Any = CAUSAL
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The language model of that kind and the tokenizer at `path`."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    _check_folder(path)
    tokenizer = _tokenizer(path)
    model = _model(path, dtype, kind)
    known, size = model.config.get_text_config().vocab_size, len(tokenizer.get_vocab())
    if size > known:
        raise ConfigError(f"model: the tokenizer of {path!r} has {size} tokens, the model {known}.")
    model.to(device)  # pyright: ignore[reportArgumentType]
    return model, tokenizer


def eos_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The tokens that end an answer: the tokenizer's own, then those of the generation config."""
    said = model.generation_config.eos_token_id if model.generation_config else None
    ends = [tokenizer.eos_token_id, *(said if isinstance(said, list) else [said])]
    return tuple(dict.fromkeys(token for token in ends if isinstance(token, int)))


def add_adapters(model: PreTrainedModel, lora: Lora) -> nn.Module:
    """The model frozen, with trainable adapters."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType]
        target_modules=lora.targets if isinstance(lora.targets, str) else list(lora.targets),
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # of what peft itself then does right
            return get_peft_model(model, config)
    except ValueError as error:
        layers = {
            n.rpartition(".")[2] for n, x in model.named_modules() if isinstance(x, nn.Linear)
        }
        allowed = ", ".join(("all-linear", *sorted(layers)))
        raise ConfigError(
            f"targets: {lora.targets!r}. {_first_line(error)} Allowed: {allowed}."
        ) from error


def enable_gradient_checkpointing(model: PreTrainedModel) -> None:
    """Let the model keep one activation for each layer and compute the rest again."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of its next name
        model.gradient_checkpointing_enable({"use_reentrant": False})


def _tokenizer(path: str) -> PreTrainedTokenizerBase:
    """It needs no pad token, for padding is masked."""
    try:
        return AutoTokenizer.from_pretrained(path)
    except LOAD_ERRORS as error:
        held = (Path(path) / "tokenizer.json").is_file() or not Path(path).is_dir()
        why = _first_line(error) if held else "there is no tokenizer.json"
        raise ConfigError(f"model: {path!r} has no tokenizer that loads: {why}") from error


def _model(path: str, dtype: torch.dtype, kind: Any) -> PreTrainedModel:
    """With dropout off: sampling and training see one policy."""
    told = {"output_loading_info": True, "ignore_mismatched_sizes": True}
    try:
        config = AutoConfig.from_pretrained(path)
        loaded: Any = kind.from_pretrained(path, config=config, dtype=dtype, **told)
    except LOAD_ERRORS as error:
        raise ConfigError(
            f"model: {path!r} is no {KIND_NAMES[kind]} that loads: {_first_line(error)}"
        ) from error
    model, info = loaded
    _check_weights(path, info)
    for module in model.modules():
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.eval()


def _check_weights(path: str, info: Any) -> None:
    """What the weights lack transformers would fill with random numbers."""
    lost = sorted(info["missing_keys"])
    if lost:
        raise ConfigError(
            f"model: the weights of {path!r} lack {len(lost)} tensors, first {lost[0]!r}."
        )
    for name, found, wanted in info["mismatched_keys"]:
        raise ConfigError(
            f"model: {name!r} in the weights of {path!r} has shape {tuple(found)}."
            f" Allowed: {tuple(wanted)}, as config.json says."
        )


def _check_folder(path: str) -> None:
    """Whatever is written like a path is one; the rest may be a name on a hub."""
    folder = Path(path)
    beside = folder.parent.is_dir() and folder.parent != Path(".")
    if not folder.is_dir() and (beside or folder.is_absolute() or path.startswith(".")):
        around = folder.parent.iterdir() if folder.parent.is_dir() else ()
        siblings = [sibling.name for sibling in around if sibling.is_dir()]
        raise ConfigError(f"model: {path!r} is not a folder. {suggest(folder.name, siblings)}")
    if folder.is_dir() and not (folder / "config.json").is_file():
        inside = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
        raise ConfigError(f"model: {path!r} has no config.json; it holds {inside}.")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(":")
