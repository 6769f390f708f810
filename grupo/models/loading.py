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

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.core.validation import check

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
IMITATED = "This processor has no instructions for bfloat16: it computes in float32, faster."
CAUSAL, MASKED = AutoModelForCausalLM, AutoModelForMaskedLM
CALLED = {CAUSAL: "causal language model", MASKED: "masked language model"}
PIPELINE = "model_index.json"  # where diffusers says what a folder holds
UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError)


@piece
class Lora:
    """Low-rank adapters on every linear layer. Hu et al., 2021, arXiv:2106.09685."""

    rank: int = 16
    alpha: float = 32.0
    targets: str | tuple[str, ...] = "all-linear"

    def __post_init__(self) -> None:
        check(
            [
                ("rank", self.rank, self.rank >= 1, "1 or more"),
                ("alpha", self.alpha, self.alpha > 0, "above 0"),
            ]
        )


def device_of(name: str) -> torch.device:
    """The device of that name; `auto` is the first accelerator, or the processor."""
    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    allowed = ["auto", "cpu", *(["cuda", *found] if found else [])]
    if name not in allowed:
        raise Refused(f"device: {name!r} is not here. {nearest(name, allowed)}")
    return torch.device((found or ["cpu"])[0] if name == "auto" else name)


def computed_in(dtype: str, device: torch.device) -> torch.dtype:
    """What a policy of that `dtype` computes in: nothing that the device would but imitate."""
    return torch.float32 if imitates(dtype, device) else DTYPES[dtype]


def imitates(dtype: str, device: torch.device) -> str:
    """What to say of a device that has no instructions for that; nothing if it has."""
    return IMITATED if dtype == "bfloat16" and not has_bfloat16(device) else ""


def has_bfloat16(device: torch.device) -> bool:
    """Does the device work with bfloat16 itself?"""
    if device.type != "cpu":
        return True
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def find(path: str) -> None:
    """Refuse a model that is not there, neither as a folder nor under that name on the hub."""
    if (Path(path) / PIPELINE).is_file():
        return
    _check_folder(path)
    if not Path(path).is_dir():
        try:
            AutoConfig.from_pretrained(path)
        except UNREADABLE as error:
            said = f"{path!r} is no folder, and as a name on the hub it does not load"
            allowed = "a model's folder, or its name on the hub"
            raise Refused(f"model: {said}: {_first(error)} Allowed: {allowed}.") from error


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
        raise Refused(f"model: the tokenizer of {path!r} has {size} tokens, the model {known}.")
    model.to(device)  # pyright: ignore[reportArgumentType]
    return model, tokenizer


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The tokens that end an answer: the tokenizer's own, then those of the generation config."""
    said = model.generation_config.eos_token_id if model.generation_config else None
    ends = [tokenizer.eos_token_id, *(said if isinstance(said, list) else [said])]
    return tuple(dict.fromkeys(token for token in ends if isinstance(token, int)))


def adapted(model: PreTrainedModel, lora: Lora) -> nn.Module:
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
        raise Refused(f"targets: {lora.targets!r}. {_first(error)} Allowed: {allowed}.") from error


def checkpointed(model: PreTrainedModel) -> None:
    """Let the model keep one activation for each layer and compute the rest again."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of its next name
        model.gradient_checkpointing_enable({"use_reentrant": False})


def _tokenizer(path: str) -> PreTrainedTokenizerBase:
    """It needs no pad token, for padding is masked."""
    try:
        return AutoTokenizer.from_pretrained(path)
    except UNREADABLE as error:
        held = (Path(path) / "tokenizer.json").is_file() or not Path(path).is_dir()
        why = _first(error) if held else "there is no tokenizer.json"
        raise Refused(f"model: {path!r} has no tokenizer that loads: {why}") from error


def _model(path: str, dtype: torch.dtype, kind: Any) -> PreTrainedModel:
    """With dropout off: sampling and training see one policy."""
    told = {"output_loading_info": True, "ignore_mismatched_sizes": True}
    try:
        config = AutoConfig.from_pretrained(path)
        loaded: Any = kind.from_pretrained(path, config=config, dtype=dtype, **told)
    except UNREADABLE as error:
        raise Refused(
            f"model: {path!r} is no {CALLED[kind]} that loads: {_first(error)}"
        ) from error
    model, info = loaded
    _check_whole(path, info)
    for module in model.modules():
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.eval()


def _check_whole(path: str, info: Any) -> None:
    """What the weights lack transformers would fill with random numbers."""
    lost = sorted(info["missing_keys"])
    if lost:
        raise Refused(
            f"model: the weights of {path!r} lack {len(lost)} tensors, first {lost[0]!r}."
        )
    for name, found, wanted in info["mismatched_keys"]:
        raise Refused(
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
        raise Refused(f"model: {path!r} is not a folder. {nearest(folder.name, siblings)}")
    if folder.is_dir() and not (folder / "config.json").is_file():
        inside = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
        raise Refused(f"model: {path!r} has no config.json; it holds {inside}.")


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(":")
