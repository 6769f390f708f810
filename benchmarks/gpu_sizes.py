"""What is measured on a GPU: shapes of models, and how much they read and say."""

from dataclasses import dataclass

FULL_VOCABULARY = 151_936


@dataclass(frozen=True)
class Shape:
    """A model like Qwen3."""

    name: str
    hidden: int
    inner: int
    layers: int = 28
    heads: int = 16
    groups: int = 8  # heads of keys and values
    width: int = 128  # of a head
    vocabulary: int = FULL_VOCABULARY


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    shapes: tuple[Shape, ...]
    prompts: int  # each is answered by equally many rows
    batches: tuple[int, ...]  # rows that are sampled together
    prompt: int  # tokens
    new: int  # tokens of an answer
    stride: int  # tokens said by one captured graph; then a wider one goes on
    rows: tuple[int, int]  # prompts of an update, and answers to each
    chunks: tuple[int, ...]  # logits worked on at once
    group_sizes: tuple[int, ...]
    long_prompt: int
    few: int  # tokens of an answer where growth of sampling is measured
    square: int  # side of a matrix
    copied: int  # bytes


FULL = Sizes(
    shapes=(Shape("0.6 B", 1024, 3072), Shape("1.7 B", 2048, 6144)),
    prompts=16,
    batches=(32, 128, 512),
    prompt=512,
    new=256,
    stride=64,
    rows=(2, 16),
    chunks=(1 << 23, 1 << 25, 1 << 27, 1 << 29),
    group_sizes=(1, 4, 16, 64),
    long_prompt=2048,
    few=64,
    square=8192,
    copied=1 << 31,
)
_small = {"layers": 2, "heads": 4, "groups": 2, "width": 16, "vocabulary": 512}
TINY = Sizes(
    shapes=(Shape("tiny", 64, 128, **_small), Shape("less tiny", 96, 192, **_small)),
    prompts=2,
    batches=(2, 4, 8),
    prompt=20,
    new=9,
    stride=4,
    rows=(2, 3),
    chunks=(1 << 10, 1 << 12),
    group_sizes=(1, 3),
    long_prompt=40,
    few=4,
    square=128,
    copied=1 << 20,
)
