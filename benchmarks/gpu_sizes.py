"""Sizes of the GPU benchmark: shapes of models, batches and lengths."""

from dataclasses import dataclass

FULL_VOCABULARY = 151_936


@dataclass(frozen=True)
class ModelShape:
    """Dimensions of a model like Qwen3."""

    name: str
    hidden_size: int
    intermediate_size: int
    layers: int = 28
    heads: int = 16
    kv_heads: int = 8
    head_dim: int = 128
    vocab_size: int = FULL_VOCABULARY


@dataclass(frozen=True)
class BenchmarkSizes:
    """Sizes of all jobs; lengths in tokens."""

    shapes: tuple[ModelShape, ...]
    prompts: int  # of a sampled batch, with the same number of rows each
    batch_sizes: tuple[int, ...]  # rows sampled together
    prompt_length: int
    new_tokens: int
    update_rows: tuple[int, int]  # prompts, answers per prompt
    chunk_sizes: tuple[int, ...]  # logits per chunk
    group_sizes: tuple[int, ...]  # answers to one long prompt
    long_prompt: int
    short_new_tokens: int  # of an answer to a long prompt, when sampling
    matrix_size: int  # rows and columns
    copy_bytes: int


FULL_SIZES = BenchmarkSizes(
    shapes=(ModelShape("0.6 B", 1024, 3072), ModelShape("1.7 B", 2048, 6144)),
    prompts=16,
    batch_sizes=(32, 128, 512),
    prompt_length=512,
    new_tokens=256,
    update_rows=(2, 16),
    chunk_sizes=(1 << 23, 1 << 25, 1 << 27, 1 << 29),
    group_sizes=(1, 4, 16, 64),
    long_prompt=2048,
    short_new_tokens=64,
    matrix_size=8192,
    copy_bytes=1 << 31,
)
_tiny_shape = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 16, "vocab_size": 512}
TINY_SIZES = BenchmarkSizes(
    shapes=(
        ModelShape("tiny", 64, 128, **_tiny_shape),
        ModelShape("less tiny", 96, 192, **_tiny_shape),
    ),
    prompts=2,
    batch_sizes=(2, 4, 8),
    prompt_length=20,
    new_tokens=9,
    update_rows=(2, 3),
    chunk_sizes=(1 << 10, 1 << 12),
    group_sizes=(1, 3),
    long_prompt=40,
    short_new_tokens=4,
    matrix_size=128,
    copy_bytes=1 << 20,
)
