"""Conversion of a GGUF file into a model and a tokenizer of transformers."""

import contextlib
import functools
import math
import tempfile
from collections.abc import Collection, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    modeling_gguf_pytorch_utils,
)
from transformers.integrations.gguf.gguf_conversion_mapping import GGUF_ARCHS

from grupo.models.gguf.header import GgufHeader
from grupo.models.gguf.pre_tokenizers import set_pre_tokenizer
from grupo.models.quiet_loading import quiet_transformers
from grupo.util.errors import ConfigError

MOST_WEIGHTS = 3  # for one in the file: tied ones are in it once
END_OF_TURN = "tokenizer.ggml.eot_token_id"  # of chat models, beside that of a text


@dataclass(frozen=True)
class ConvertedModel:
    """A model in float32 and its tokenizer, as a GGUF file holds them.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def save(self, folder: Path) -> None:
        """Write both for transformers."""
        with quiet_transformers():
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)


def convert(file: Path, header: GgufHeader) -> ConvertedModel:
    """Read a GGUF file, whose header was checked, into a model and a tokenizer of transformers.

    Raises:
        ConfigError: A tensor is missing or has another shape, or nothing reads it.
    """
    with _alone(file) as source, quiet_transformers(), _no_progress_bar():
        config = AutoConfig.from_pretrained(**source)
        check_all_read(header, config)
        tokenizer: Any = AutoTokenizer.from_pretrained(**source)
        model = _load(source)
    set_pre_tokenizer(tokenizer, header)
    _add_end_of_turn(model, header)
    return ConvertedModel(model, tokenizer)


def check_all_read(header: GgufHeader, config: Any) -> None:
    """Raise `ConfigError` for a tensor that transformers would leave out, or a much larger model.

    Biases that the architecture does not have and scales of rotary embeddings are left out: without
    them the model is another one. A model much larger than the tensors would fill memory.
    """
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    _check_num_weights(header, model)
    if header.architecture in GGUF_ARCHS:
        return  # of these transformers names the tensors that it leaves out
    names = modeling_gguf_pytorch_utils
    processor = names.TENSOR_PROCESSORS.get(header.architecture, names.TensorProcessor)(config={})
    read = set(names.get_gguf_hf_weights_map(model, processor))
    read |= {f"{name}.weight" for name in read}  # experts, which transformers joins
    _check_none_left_out({tensor.name for tensor in header.tensors} - read)


def _check_num_weights(header: GgufHeader, model: PreTrainedModel) -> None:
    """Raise `ConfigError` if a model has many more weights than the tensors of a file."""
    expected = sum(parameter.numel() for parameter in model.parameters())
    actual = sum(math.prod(tensor.shape) for tensor in header.tensors)
    if expected > MOST_WEIGHTS * actual:
        raise ConfigError(
            f"its settings describe a model of {expected:,} weights, and its tensors have"
            f" {actual:,}. Allowed: settings of the model whose tensors it has."
        )


def _load(source: dict[str, Any]) -> PreTrainedModel:
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        **source,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
        output_loading_info=True,
        ignore_mismatched_sizes=True,
    )
    model, info = loaded
    if missing := sorted(info["missing_keys"]):
        raise ConfigError(f"it lacks {len(missing)} tensors of the model, first {missing[0]!r}.")
    for name, actual, expected in sorted(info["mismatched_keys"]):
        raise ConfigError(
            f"{name!r} has shape {tuple(actual)}. Allowed: {tuple(expected)}, as its settings say."
        )
    _check_none_left_out(info["unexpected_keys"])
    model.hf_quantizer = None  # with it transformers refuses to save; the weights are plain numbers
    return model


def _check_none_left_out(names: Collection[str]) -> None:
    for name in sorted(names):
        raise ConfigError(
            f"transformers does not read its tensor {name!r}: the model would be another one."
            " Allowed: a file whose tensors are all read. Name the model's folder or its name on"
            " the hub."
        )


def _add_end_of_turn(model: PreTrainedModel, header: GgufHeader) -> None:
    """Let answers end with the end of a turn, too, which transformers does not read."""
    token: Any = header.settings.get(END_OF_TURN)
    generation: Any = model.generation_config
    if token is None or generation is None:
        return
    ends = generation.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    generation.eos_token_id = list(dict.fromkeys(x for x in (*ends, token) if x is not None))


@contextlib.contextmanager
def _alone(file: Path) -> Generator[dict[str, Any]]:
    """The file as transformers names it, in a folder without files that it would read as well."""
    with tempfile.TemporaryDirectory(prefix="grupo-") as folder:
        (Path(folder) / "model.gguf").symlink_to(file.absolute())
        yield {"pretrained_model_name_or_path": folder, "gguf_file": "model.gguf"}


@contextlib.contextmanager
def _no_progress_bar() -> Generator[None]:
    """Context manager without the bar that transformers shows whatever its settings are."""
    module: Any = modeling_gguf_pytorch_utils
    original = module.tqdm
    module.tqdm = functools.partial(original, disable=True)
    try:
        yield
    finally:
        module.tqdm = original
