"""The benchmark workloads as data; standard library only, since every environment imports it."""

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

THREADS = 2
HEAD_SIZE = 64  # dimensions of an attention head
END_PROBABILITY = 0.04  # of the end token at every position, where answers end by themselves


@dataclass(frozen=True)
class Shape:
    """A Llama with random weights and heads of 64 dimensions.

    Args:
        hidden_size: dimensions of a hidden state.
        layers: number of layers.
        intermediate_size: dimensions within an MLP.
        vocab_size: number of different tokens.
        answers_end: the end token is likely enough to end answers before the token limit.
        queries_per_key: query heads that share a key head.
        tied: the LM head has the weights of the embedding.
        rope_theta: base of the rotary position embedding.
        context_length: largest number of tokens of a row.
    """

    hidden_size: int = 256
    layers: int = 4
    intermediate_size: int = 688
    vocab_size: int = 1024
    answers_end: bool = False
    queries_per_key: int = 2
    tied: bool = False
    rope_theta: float = 10_000.0
    context_length: int = 4096

    @property
    def name(self) -> str:
        """Return the name of the model's folder."""
        ending = "ends" if self.answers_end else "runs"
        return f"{self.hidden_size}x{self.layers}-{self.vocab_size}-{ending}"

    @property
    def query_heads(self) -> int:
        """Return the number of query heads."""
        return self.hidden_size // HEAD_SIZE

    @property
    def key_heads(self) -> int:
        """Return the number of key heads, which is that of value heads."""
        return self.query_heads // self.queries_per_key

    @property
    def product_weights(self) -> int:
        """Return the number of weights that a new token is multiplied with, the LM head's too."""
        attention = 2 * HEAD_SIZE * (self.query_heads + self.key_heads)
        layer = self.hidden_size * (attention + 3 * self.intermediate_size)
        return self.layers * layer + self.vocab_size * self.hidden_size


@dataclass(frozen=True)
class Workload:
    """One training step.

    Args:
        description: the row label in tables.
        shape: the model.
        prompts: prompts per step.
        group_size: rollouts per prompt.
        prompt_lengths: smallest and largest number of prompt tokens, and of each observation.
        max_new_tokens: tokens per answer.
        solved_frac: fraction of answers with reward 1 instead of 0; 0: a continuous reward.
        turns: answers per rollout, each after an observation.
        turns_as_tasks: TRL gets every turn as a separate task.
        microbatch_rows: rows per micro-batch of TRL; 0: the whole step.
        precisions: the precisions to measure.
        lora_rank: rank of adapters on all linear layers; 0: all weights are trained.
    """

    description: str
    shape: Shape = Shape()
    prompts: int = 16
    group_size: int = 8
    prompt_lengths: tuple[int, int] = (12, 16)
    max_new_tokens: int = 32
    solved_frac: float = 0.0
    turns: int = 1
    turns_as_tasks: bool = False
    microbatch_rows: int = 0
    precisions: tuple[str, ...] = ("float32",)
    lora_rank: int = 0

    @property
    def rows(self) -> int:
        """Return the number of rows that TRL trains on in a step."""
        return self.prompts * self.group_size * (self.turns if self.turns_as_tasks else 1)


def _workloads() -> dict[str, Workload]:
    both, tiny = ("float32", "bfloat16"), Shape(answers_end=True)
    short = Workload("16 x 8, 14 prompt tokens, up to 32 new", tiny, precisions=both)
    exact = Workload("16 x 8, 14 prompt tokens, 32 new")
    long = Workload(
        "4 x 8, 512 prompt tokens, 32 new", prompts=4, prompt_lengths=(512, 512), precisions=both
    )
    agent = Workload(
        "2 x 8, 8 turns of 64 read and 16 new tokens",
        prompts=2,
        prompt_lengths=(64, 64),
        max_new_tokens=16,
        turns=8,
    )
    workloads = {
        "short": short,
        "short-signal": replace(
            short, description=f"{short.description}, reward 0 or 1", solved_frac=0.14
        ),
        "long": long,
        "vocabulary-32k": replace(exact, shape=Shape(vocab_size=32_000), precisions=both),
        "vocabulary-150k": replace(
            exact,
            description="4 x 8, 14 prompt tokens, 32 new",
            prompts=4,
            shape=Shape(vocab_size=150_000),
        ),
        "agent": agent,
        "agent-apart": replace(
            agent,
            turns_as_tasks=True,
            microbatch_rows=16,
            description=f"{agent.description}, TRL's apart",
        ),
    }
    return workloads | _scaling_workloads(exact)


def _scaling_workloads(base: Workload) -> dict[str, Workload]:
    """Return the series of growing groups, prompts and models."""
    groups = {
        f"group-{n}": replace(base, description=f"16 x {n}, 14 prompt tokens, 32 new", group_size=n)
        for n in (4, 8, 16, 32)
    }
    prompts_by_length = {
        f"prompt-{n}": replace(
            base,
            description=f"{prompts} x 16, {n:,} prompt tokens, 32 new",
            prompts=prompts,
            group_size=16,
            prompt_lengths=(n, n),
            microbatch_rows=micro,
        )
        for n, prompts, micro in ((64, 2, 0), (512, 2, 0), (2048, 1, 4))
    }
    shapes = {"1M": Shape(128, 4, 352), "4M": Shape(256, 5, 688), "25M": Shape(512, 8, 1376)}
    sizes = {f"size-{name}": replace(base, shape=shape) for name, shape in shapes.items()}
    return groups | prompts_by_length | sizes


SMOLLM2 = Shape(
    576, 30, 1536, 49_152, queries_per_key=3, tied=True, rope_theta=1e5, context_length=8192
)


def _real_workloads() -> dict[str, Workload]:
    """Return the workloads with a model of the shape of SmolLM2-135M."""
    short = Workload(
        "4 x 8, 60 prompt tokens, 48 new",
        SMOLLM2,
        prompts=4,
        prompt_lengths=(60, 60),
        max_new_tokens=48,
        precisions=("float32", "bfloat16"),
    )
    return {
        "real-short": short,
        "real-long": replace(
            short,
            description="4 x 8, 500 prompt tokens, 48 new",
            prompt_lengths=(500, 500),
            microbatch_rows=8,  # 16 rows would take about 24 GB beside grupo's worker
        ),
        "real-group-16": replace(
            short, description="2 x 16, 60 prompt tokens, 48 new", prompts=2, group_size=16
        ),
        "real-lora": replace(
            short, description=f"{short.description}, LoRA of rank 16", lora_rank=16
        ),
    }


def _sampling_workloads() -> dict[str, Workload]:
    """Return the workloads of `benchmarks.sampling` with small models."""
    return {
        f"{size}-{prompts * 8}x{new}": Workload(
            f"{size} M parameters, {prompts} x 8, 14 prompt tokens, {new} new",
            shape,
            prompts=prompts,
            max_new_tokens=new,
            precisions=("float32", "bfloat16"),
        )
        for size, shape in ((3, Shape()), (24, Shape(512, 8, 1376)))
        for prompts, new in ((16, 32), (8, 256))
    }


def _real_sampling_workloads() -> dict[str, Workload]:
    """Return the workloads of `benchmarks.sampling` with a model of the shape of SmolLM2-135M."""
    short = _real_workloads()["real-short"]
    return {
        f"real-sample-{prompts * 8}x{new}": replace(
            short,
            description=f"135 M parameters, {prompts} x 8, 60 prompt tokens, {new} new",
            prompts=prompts,
            max_new_tokens=new,
        )
        for prompts, new in ((4, 32), (2, 256))
    }


SMALL_WORKLOADS = _workloads()
REAL_WORKLOADS = _real_workloads()
WORKLOADS = SMALL_WORKLOADS | REAL_WORKLOADS
SMALL_SAMPLING = _sampling_workloads()
REAL_SAMPLING = _real_sampling_workloads()
SAMPLING_WORKLOADS = SMALL_SAMPLING | REAL_SAMPLING


def random_prompts(workload: Workload, count: int) -> list[str]:
    """Return prompts of random words."""
    rng = random.Random(0)
    return [
        random_words(workload, rng, rng.randint(*workload.prompt_lengths)) for _ in range(count)
    ]


def random_words(workload: Workload, rng: random.Random, length: int) -> str:
    """Return a text of `length` random words."""
    words = range(2, workload.shape.vocab_size)  # without the end and padding tokens
    return " ".join(f"w{word}" for word in rng.choices(words, k=length))


def turn_text(workload: Workload, prompt: str, turn: int) -> str:
    """Return the observation before answer number `turn` (from 1) of a task with that prompt."""
    return random_words(workload, random.Random(f"{prompt}/{turn}"), workload.prompt_lengths[0])


def turn_contexts(workload: Workload, count: int) -> list[str]:
    """Return the prompts of single-turn tasks that replace `count` multi-turn tasks.

    The prompt of each turn is its context: observations and answers of full length, as random
    words. The turns of a task are consecutive.
    """
    rng = random.Random(0)
    observation, _ = workload.prompt_lengths
    turn_length = observation + workload.max_new_tokens
    lengths = [observation + turn * turn_length for turn in range(workload.turns)]
    return [random_words(workload, rng, length) for _ in range(count) for length in lengths]


def reward(workload: Workload, completion_ids: Sequence[Sequence[int]]) -> list[float]:
    """Return a hash of each completion in [0, 1], or with `solved_frac` a reward of 0 or 1."""
    hashes = [zlib.crc32(repr(list(ids)).encode()) % 10_007 / 10_007 for ids in completion_ids]
    if not workload.solved_frac:
        return hashes
    return [float(number < workload.solved_frac) for number in hashes]
