"""Models and tokenizers from a folder or a hub, or one clear reason why not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from grupo.errors import Refused, nearest
from grupo.piece import piece

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@piece
class Lora:
    """Low-rank adapters on every linear layer. Hu et al., 2021, arXiv:2106.09685."""

    rank: int = 16
    alpha: float = 32.0
    targets: str | tuple[str, ...] = "all-linear"


def load_model(path: str, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """The causal language model at `path`, dropout off: sampling and training see one policy."""
    _check_folder(path)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(path)
        model = AutoModelForCausalLM.from_pretrained(path, config=config, dtype=dtype)
    except (OSError, ValueError) as error:
        raise Refused(f"model: {path!r} is no causal language model: {_first(error)}") from error
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "attn_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    model.eval()
    model.to(device)  # pyright: ignore[reportArgumentType]
    return model


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """The tokenizer at `path`; it needs no pad token, for padding is masked."""
    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError, KeyError) as error:
        raise Refused(f"model: {path!r} has no tokenizer: {_first(error)}") from error


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokens that end an answer: those of the generation config and the tokenizer's own."""
    said = model.generation_config.eos_token_id if model.generation_config else None
    ends = [*(said if isinstance(said, list) else [said]), tokenizer.eos_token_id]
    return frozenset(token for token in ends if isinstance(token, int))


def adapted(model: PreTrainedModel, lora: Lora) -> nn.Module:
    """The model frozen, with trainable adapters."""
    from peft import LoraConfig, get_peft_model

    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType]
        target_modules=targets,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def head_of(model: PreTrainedModel) -> Callable[[Tensor], Tensor]:
    """From the body's last hidden states to logits, as the model's own forward does: probed."""
    output: Any = model.get_output_embeddings()
    config = model.config.get_text_config()
    softcap = getattr(config, "final_logit_softcapping", None)
    scale = getattr(config, "logit_scale", None) or 1 / (
        getattr(config, "logits_scaling", None) or 1
    )

    def head(hidden: Tensor) -> Tensor:
        logits = output(hidden) * scale if scale != 1 else output(hidden)
        return softcap * torch.tanh(logits / softcap) if softcap else logits

    with torch.no_grad():
        probe = torch.arange(4, device=model.device)[None]
        own, ours = model(probe).logits, head(model.base_model(probe).last_hidden_state)
    if not torch.allclose(own.float(), ours.float(), rtol=1e-3, atol=1e-3):
        name = type(model).__name__
        raise Refused(
            f"model: the logits of {name} are not its output layer of its last hidden states."
        )
    return head


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _check_folder(path: str) -> None:
    folder = Path(path)
    if not folder.is_dir():
        siblings = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
        if folder.is_absolute() or path.startswith("."):
            raise Refused(f"model: {path!r} is not a folder. {nearest(folder.name, siblings)}")
    elif not (folder / "config.json").is_file():
        inside = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
        raise Refused(f"model: {path!r} has no config.json; it holds {inside}.")
