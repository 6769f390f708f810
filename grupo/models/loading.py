"""Loading of models and tokenizers from a folder or a hub, with clear errors."""

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
    AutoModelForMultimodalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from grupo.models.config_file import check_config_file, check_tokenizer_file
from grupo.models.hub import check_hub_answers
from grupo.models.model_folder import model_folder
from grupo.models.model_references import check_references
from grupo.models.quantization import Nf4, keep_weights_unpacked
from grupo.models.quantized_weights import check_quantized_weights, is_dequantized
from grupo.models.quiet_loading import quiet_transformers
from grupo.models.tokenizer_trial import check_tokenizer_works
from grupo.models.weight_files import check_no_pickle
from grupo.util.errors import ConfigError, suggest
from grupo.util.run_files import RECIPE_JSON
from grupo.util.rust_panics import rust_errors, without_backtraces
from grupo.util.user_paths import shell_path

CAUSAL = AutoModelForCausalLM
MASKED = AutoModelForMaskedLM
MULTIMODAL = AutoModelForMultimodalLM
KIND_NAMES = {
    CAUSAL: "causal language model",
    MASKED: "masked language model",
    MULTIMODAL: "model that reads images or audio",
}
PIPELINE_INDEX = "model_index.json"  # marks the folder of a diffusers pipeline
LOAD_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError)


def check_model_exists(path: str) -> None:
    """Raise `ConfigError` if `path` is no model's folder, no GGUF file and no name on the hub."""
    path = model_folder(path)
    if (Path(path) / PIPELINE_INDEX).is_file():
        return
    _check_folder(path)
    if not Path(path).is_dir():
        try:
            AutoConfig.from_pretrained(path, trust_remote_code=False)
        except LOAD_ERRORS as error:
            problem = f"{path!r} is no folder, and as a name on the hub it does not load"
            allowed = "a model's folder, a .gguf file, or a name on the hub"
            raise ConfigError(
                f"model: {problem}: {first_line(error)} Allowed: {allowed}."
            ) from error


def load(
    path: str,
    dtype: torch.dtype,
    device: torch.device,
    kind: Any = CAUSAL,
    *,
    allow_pickle: bool = False,
    quantization: Nf4 | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a language model and its tokenizer, with dropout off.

    Args:
        path: folder, GGUF file or hub name.
        dtype: type of the stored weights.
        device: where the model lives.
        kind: `CAUSAL`, `MASKED` or `MULTIMODAL`.
        allow_pickle: read weights that are no safetensors with torch, as pickles.
        quantization: quantize the weights while they are loaded.

    Raises:
        ConfigError: the model or the tokenizer does not load, or its weights are pickles.
    """
    path = model_folder(path)
    _check_folder(path)
    check_config_file(path)
    with quiet_transformers():
        tokenizer = load_tokenizer(path)
        options = quantization.loading_options(dtype, device) if quantization else {}
        model = _model(path, dtype, kind, allow_pickle, options)
    if quantization:
        keep_weights_unpacked(model)
    check_vocabulary(path, model, tokenizer)
    if not quantization:  # a quantized model is loaded where it stays
        model.to(device)  # pyrefly: ignore[bad-argument-type]
    return model, tokenizer


def check_vocabulary(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise `ConfigError` if the tokenizer has more tokens than the model."""
    model_size = model.config.get_text_config().vocab_size
    tokenizer_size = len(tokenizer.get_vocab())
    if tokenizer_size > model_size:
        raise ConfigError(
            f"model: the tokenizer of {name!r} has {tokenizer_size} tokens, the model {model_size}."
        )


def disable_dropout(model: nn.Module) -> None:
    """Set every dropout to 0, so that generation and training see one distribution."""
    for module in model.modules():
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def context_length_of(config: PreTrainedConfig) -> int:
    """Most tokens of a prompt with its answer; practically unlimited if the config has no limit."""
    return int(getattr(config.get_text_config(), "max_position_embeddings", 1 << 30))


def eos_token_ids(
    generation_config: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase
) -> tuple[int, ...]:
    """Tokens that end an answer: the tokenizer's own, then those of the generation config."""
    configured = generation_config.eos_token_id if generation_config else None
    ids = configured if isinstance(configured, list) else [configured]
    candidates = [tokenizer.eos_token_id, *ids]
    return tuple(dict.fromkeys(token for token in candidates if isinstance(token, int)))


def enable_gradient_checkpointing(model: PreTrainedModel) -> None:
    """Keep one activation per layer and recompute the others in the backward pass."""
    # transformers warns that the argument gets another name
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        model.gradient_checkpointing_enable({"use_reentrant": False})


def load_config(model: str) -> PreTrainedConfig:
    """Load the configuration of a model: of a folder, a GGUF file or a name on the hub."""
    check_hub_answers(model_folder(model))
    return AutoConfig.from_pretrained(model_folder(model), trust_remote_code=False)


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """Load a tokenizer; it needs no pad token, because padding is masked."""
    check_hub_answers(model_folder(path))
    check_tokenizer_file(model_folder(path))
    check_references(model_folder(path))
    check_tokenizer_works(model_folder(path))
    try:
        with rust_errors(f"model: {path!r} has no tokenizer that loads"), without_backtraces():
            folder = model_folder(path)
            tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except ConfigError:
        raise
    except Exception as error:  # the libraries raise errors of any type
        if not isinstance(error, LOAD_ERRORS):  # config.json is read too; its own error is better
            AutoConfig.from_pretrained(model_folder(path), trust_remote_code=False)
        has_file = (Path(path) / "tokenizer.json").is_file() or not Path(path).is_dir()
        reason = first_line(error) if has_file else "there is no tokenizer.json"
        raise ConfigError(f"model: {path!r} has no tokenizer that loads: {reason}") from error
    length: Any = tokenizer.model_max_length
    if isinstance(length, bool) or not isinstance(length, int | float):
        place = f"model: {path!r}: tokenizer_config.json: model_max_length"
        raise ConfigError(f"{place}: {str(length)[:80]!r}. Allowed: a number of tokens.")
    return tokenizer


def _model(
    path: str, dtype: torch.dtype, kind: Any, allow_pickle: bool, loading_options: dict[str, Any]
) -> PreTrainedModel:
    """Load a model with dropout off."""
    options = {
        "output_loading_info": True,
        "trust_remote_code": False,  # without a value, transformers may ask in the terminal
        "ignore_mismatched_sizes": not loading_options,  # quantized weights have other shapes
        **loading_options,
    }
    errors = (Exception,) if allow_pickle else LOAD_ERRORS  # a pickle can raise any error
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
        settings = config.to_dict()  # transformers removes those of dequantized weights
        check_quantized_weights(f"model: {path!r}: config.json", settings)
        if not allow_pickle:
            check_no_pickle(path, config, kind)
            options["use_safetensors"] = True
        loaded: Any = kind.from_pretrained(path, config=config, dtype=dtype, **options)
    except ConfigError:
        raise
    except errors as error:
        raise ConfigError(
            f"model: {path!r} is no {KIND_NAMES[kind]} that loads: {first_line(error)}"
        ) from error
    model, info = loaded
    _check_weights(path, info)
    if is_dequantized(settings):
        del model._weight_conversions  # an export would get the names of the quantized weights
    disable_dropout(model)
    return model.eval()


def _check_weights(path: str, info: Any) -> None:
    """Raise `ConfigError` for missing weights, which transformers would initialize at random."""
    missing = sorted(info["missing_keys"])
    if missing:
        raise ConfigError(
            f"model: the weights of {path!r} lack {len(missing)} tensors, first {missing[0]!r}."
        )
    for name, actual, expected in info["mismatched_keys"]:
        raise ConfigError(
            f"model: {name!r} in the weights of {path!r} has shape {tuple(actual)}."
            f" Allowed: {tuple(expected)}, as in config.json."
        )


def _check_folder(path: str) -> None:
    """Raise `ConfigError` for a path without a model; other names may be on a hub."""
    folder = Path(path)
    has_parent = folder.parent.is_dir() and folder.parent != Path(".")
    if not folder.is_dir() and (has_parent or folder.is_absolute() or path.startswith(".")):
        entries = folder.parent.iterdir() if folder.parent.is_dir() else ()
        hint = suggest(folder.name, [entry.name for entry in entries if entry.is_dir()])
        if folder.is_file():
            model = shell_path(folder.parent)
            hint = f"Allowed: the folder that holds config.json. Write --model {model}."
        raise ConfigError(f"model: {path!r} is not a folder. {hint}")
    if folder.is_dir() and not (folder / "config.json").is_file():
        entries = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
        is_start = any((folder / name).is_file() for name in (RECIPE_JSON, "adapter_config.json"))
        hint = " To start from a run or from adapters, use --model or with_model()." * is_start
        raise ConfigError(f"model: {path!r} has no config.json; it holds {entries}.{hint}")
    check_hub_answers(path)


def first_line(error: Exception) -> str:
    """First line of an error's message, or its class if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(":")
