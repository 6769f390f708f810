"""Checks of a GGUF file before it is converted: whether transformers reads all that it holds."""

import re
from pathlib import Path
from typing import Any

from grupo.models.gguf.header import ALIGNMENT, MERGES, GgufHeader
from grupo.models.gguf.pre_tokenizers import check_pre_tokenizer
from grupo.models.gguf.settings import check_settings
from grupo.util.errors import ConfigError, suggest
from grupo.util.optional_deps import optional_dependency

NOT_CAUSAL = {"general", "tokenizer", "t5", "umt5"}  # in transformers' lists of architectures
TOKEN_IDS = ("bos", "eos", "eot", "unknown", "padding")
SCORES = "tokenizer.ggml.scores"
BITS = re.compile(r"I?Q(\d)|TQ(\d)")  # in the names of types: Q4_1 and IQ4_NL have 4 bits


def check_convertible(file: Path, header: GgufHeader) -> None:
    """Raise `ConfigError` for a file that transformers cannot convert, or not without loss.

    Args:
        file: The file.
        header: Its header.
    """
    with optional_dependency("gguf", "gguf"):
        import gguf  # noqa: F401
    for check in (_check_kind, _check_architecture, _check_tokenizer, _check_rope, _check_tensors):
        try:
            check(header)
        except ConfigError as error:
            raise ConfigError(f"model: {str(file)!r}: {error}") from error


def weight_type(header: GgufHeader) -> str:
    """How most of the weights are stored, such as "rounded to 4 bits (Q4_1)"."""
    import gguf

    sizes: dict[int, int] = {}
    for tensor in header.tensors:
        sizes[tensor.kind] = sizes.get(tensor.kind, 0) + _num_bytes(tensor.shape, tensor.kind)
    name = gguf.GGMLQuantizationType(max(sizes, key=sizes.__getitem__)).name
    match = BITS.match(name)
    return f"rounded to {match[1] or match[2]} bits ({name})" if match else f"stored as {name}"


def architectures() -> list[str]:
    """The architectures of causal language models that transformers reads from GGUF files."""
    from transformers.integrations.gguf.gguf_conversion_mapping import GGUF_ARCHS
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    return sorted({*GGUF_SUPPORTED_ARCHITECTURES, *GGUF_ARCHS} - NOT_CAUSAL)


def _check_kind(header: GgufHeader) -> None:
    kind = header.settings.get("general.type", "model")
    if kind != "model":
        raise ConfigError(f"its general.type is {kind!r}. Allowed: model.")
    if (parts := header.settings.get("split.count", 1)) != 1:
        raise ConfigError(
            f"it is one of {parts} parts of a model. Allowed: a whole model; llama-gguf-split"
            " --merge makes one."
        )


def _check_architecture(header: GgufHeader) -> None:
    """Raise for an architecture that transformers does not read; it spells some differently."""
    name = header.architecture
    known = architectures()
    if _plain(name) not in map(_plain, known):
        raise ConfigError(
            f"its general.architecture is {name!r}, which transformers does not read from GGUF"
            f" files. {suggest(name, known)}"
        )
    check_settings(header)


def _check_tokenizer(header: GgufHeader) -> None:
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_TOKENIZER_TYPES

    settings = header.settings
    kind = settings.get("tokenizer.ggml.model", "")
    num_tokens: Any = settings.get("tokenizer.ggml.tokens", 0)
    if not kind or not num_tokens:
        raise ConfigError("it has no tokenizer. Allowed: a file with tokenizer.ggml.tokens.")
    if kind not in GGUF_TOKENIZER_TYPES:
        hint = suggest(str(kind), GGUF_TOKENIZER_TYPES)
        raise ConfigError(f"its tokenizer.ggml.model is {kind!r}. {hint}")
    if not settings.keys() & {MERGES, SCORES}:
        raise ConfigError(
            f"it has neither {MERGES} nor {SCORES}. Allowed: a file with one of them."
        )
    for name in TOKEN_IDS:
        number: Any = settings.get(f"tokenizer.ggml.{name}_token_id", 0)
        if not isinstance(number, int) or not 0 <= number < num_tokens:
            raise ConfigError(
                f"tokenizer.ggml.{name}_token_id = {number!r}. Allowed: 0 to {num_tokens - 1}."
            )
    check_pre_tokenizer(header)


def _check_rope(header: GgufHeader) -> None:
    """Raise for scaled rotary embeddings: transformers would leave the scale out."""
    prefix = f"{header.architecture}.rope.scaling"
    kind = header.settings.get(f"{prefix}.type", "none")
    if kind != "none" and _plain(header.architecture) != "gptoss":
        raise ConfigError(
            f"its {prefix}.type is {kind!r}, which transformers does not read from GGUF files: its"
            " answers would be others. Allowed: none. Name the model's folder or its name on the"
            " hub."
        )


def _check_tensors(header: GgufHeader) -> None:
    import gguf

    known = set(gguf.GGML_QUANT_SIZES)
    for tensor in header.tensors:
        if tensor.kind not in known:
            raise ConfigError(f"the tensor {tensor.name!r} is of the unknown type {tensor.kind}.")
        end = header.data_start + tensor.offset + _num_bytes(tensor.shape, tensor.kind)
        if end > header.size:
            raise ConfigError(
                f"its {header.size:,} bytes end within the tensor {tensor.name!r}, which needs"
                f" {end:,}: it is cut off. Allowed: an intact GGUF file."
            )
    if not header.tensors:
        raise ConfigError("it has no tensors. Allowed: a file with the weights of a model.")
    _check_places(header)
    setting = f"{header.architecture}.block_count"
    num_layers: Any = header.settings.get(setting, 0)
    if num_layers > len(header.tensors):  # transformers would make them all, which takes minutes
        raise ConfigError(
            f"{setting} = {num_layers}, and the file has {len(header.tensors)} tensors. Allowed: at"
            " most one layer for each tensor."
        )


def _check_places(header: GgufHeader) -> None:
    """Raise for tensors that share bytes or begin between two multiples of the alignment."""
    alignment: Any = header.settings.get("general.alignment", ALIGNMENT)
    end, last = 0, ""
    for tensor in sorted(header.tensors, key=lambda tensor: tensor.offset):
        if tensor.offset % alignment or tensor.offset < end:
            problem = (
                f"within {last!r}" if tensor.offset < end else f"not at a multiple of {alignment}"
            )
            raise ConfigError(
                f"the tensor {tensor.name!r} begins at byte {tensor.offset:,}, {problem}. Allowed:"
                " tensors one after the other."
            )
        end, last = tensor.offset + _num_bytes(tensor.shape, tensor.kind), tensor.name


def _num_bytes(shape: tuple[int, ...], kind: int) -> int:
    import gguf

    block, num_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    elements = 1
    for size in shape:
        elements *= size
    return elements // block * num_bytes


def _plain(architecture: str) -> str:
    return architecture.replace("-", "").replace("_", "").lower()
