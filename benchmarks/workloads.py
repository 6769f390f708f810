"""What is measured, as data. Both libraries' environments import this file: only Python here."""

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

THREADS = 2
END_PROBABILITY = 0.04  # probability of the end after each token, where answers end by themselves


@dataclass(frozen=True)
class Shape:
    """A Llama with heads of 64 and random weights; `ends`: do answers end by themselves?"""

    hidden_size: int = 256
    layers: int = 4
    intermediate_size: int = 688
    vocab_size: int = 1024
    answers_end: bool = False

    @property
    def name(self) -> str:
        """Its folder."""
        ending = "ends" if self.answers_end else "runs"
        return f"{self.hidden_size}x{self.layers}-{self.vocab_size}-{ending}"


@dataclass(frozen=True)
class Workload:
    """One step: so many `prompts` of `read` tokens, each answered `group` times in `new` tokens.

    `solved` is the share of answers with reward 1 instead of 0; 0: the reward has many values.
    With more than one of `turns` the world says `read` tokens before each of them; where they are
    `turns_as_tasks`, the peer is given every turn as a task of its own. The peer's step is cut into
    micro-batches of `micro` rows where that is faster than the whole.
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

    @property
    def rows(self) -> int:
        """How many rows the peer trains in a step."""
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
    named = {
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
    return named | _scaling_workloads(exact)


def _scaling_workloads(base: Workload) -> dict[str, Workload]:
    """What grows: the group, the prompt, the model."""
    groups = {
        f"group-{n}": replace(base, description=f"16 x {n}, 14 prompt tokens, 32 new", group_size=n)
        for n in (4, 8, 16, 32)
    }
    reads = {
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
    return groups | reads | sizes


def _sampling_workloads() -> dict[str, Workload]:
    """What is only sampled."""
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


WORKLOADS = _workloads()
SAMPLING_WORKLOADS = _sampling_workloads()


def random_prompts(workload: Workload, count: int) -> list[str]:
    """Texts of random words; the end and the pad are no words."""
    rng = random.Random(0)
    return [
        random_words(workload, rng, rng.randint(*workload.prompt_lengths)) for _ in range(count)
    ]


def random_words(workload: Workload, rng: random.Random, length: int) -> str:
    """So many random words."""
    words = range(2, workload.shape.vocab_size)
    return " ".join(f"w{word}" for word in rng.choices(words, k=length))


def turn_text(workload: Workload, prompt: str, turn: int) -> str:
    """What the world says before the `turn`-th answer but the first, to whoever had that prompt."""
    return random_words(workload, random.Random(f"{prompt}/{turn}"), workload.prompt_lengths[0])


def turn_contexts(workload: Workload, count: int) -> list[str]:
    """What single-turn tasks would be given in place of `count` tasks of several turns each.

    The context of each turn is a prompt: what the world has said so far and, as long as answers
    are, what was answered. The turns of one task follow one another.
    """
    rng, (read, _) = random.Random(0), workload.prompt_lengths
    lengths = [read + turn * (read + workload.max_new_tokens) for turn in range(workload.turns)]
    return [random_words(workload, rng, length) for _ in range(count) for length in lengths]


def reward(workload: Workload, completion_ids: Sequence[Sequence[int]]) -> list[float]:
    """A number in 0..1 that only the tokens decide, or 1 for a share of the answers and else 0."""
    numbers = [zlib.crc32(repr(list(ids)).encode()) % 10_007 / 10_007 for ids in completion_ids]
    return [float(x < workload.solved_frac) for x in numbers] if workload.solved_frac else numbers
