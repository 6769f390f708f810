"""What is measured, what matters most first: a later row may find no time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from benchmarks import gpu_attention as attention
from benchmarks import gpu_check as check
from benchmarks.gpu_board import Job, Said
from benchmarks.gpu_readings import ONE_LENGTH, READINGS, Reading, Rows, rows_of
from benchmarks.gpu_sampling import WAYS, Asked, measured
from benchmarks.gpu_sizes import Shape, Sizes
from benchmarks.gpu_update import KEEPING, LOGITS, Update, at_once, in_chunks, likelihood

COMPILING = 90.0  # seconds, about
GRUPO, GRAPHS, DYNAMIC, STATIC, BY_DEFAULT, *COMPILED = WAYS


def checks(sizes: Sizes) -> Iterator[Job]:
    """Is it right? Before anything else."""
    table = "Correctness"
    for way in ("packed, parts", "packed, flex"):
        yield Job(table, {"what": f"logits, {way}"}, 5, partial(check.logits, way))
        yield Job(table, {"what": f"gradients, {way}"}, 5, partial(check.gradients, way))
    for answers in (4, 20):  # another length must not need another kernel
        what = {"what": f"flex in bfloat16 and its gradients, {answers} answers"}
        yield Job(table, what, 5, partial(check.kernels, sizes.shapes[0], answers))
    yield Job(table, {"what": "what the engine says"}, 5, check.engine)
    yield Job(table, {"what": "what captured steps say"}, 5, check.graphs)


@dataclass(frozen=True)
class Jobs:
    """Those of one shape of models; `flop` and `bandwidth` are what the machine can do."""

    sizes: Sizes
    shape: Shape
    flop: float
    bandwidth: float

    def updates(self, logits: str) -> Iterator[Job]:
        """Every way to read and to keep, of the same rows."""
        for keeping, way in product(KEEPING, READINGS):
            yield self._update(way, READINGS[way], keeping, logits)

    def one_length(self) -> Iterator[Job]:
        """flex_attention compiled for that line alone."""
        job = self._update("packed, flex of one length", ONE_LENGTH, "no", "chunks")
        yield replace(job, guess=COMPILING)

    def _update(self, way: str, reading: Reading, keeping: str, logits: str) -> Job:
        sizes = self.sizes
        rows = partial(rows_of, self.shape, *sizes.rows, sizes.prompt, sizes.new)
        update = Update(reading, LOGITS[logits], keeping, rows)
        of = {"model": self.shape.name, "way": way, "checkpointing": keeping, "logits": logits}
        return Job("Updates", of, 5, partial(update.measured, self.shape, self.flop))

    def attention(self) -> Iterator[Job]:
        """One layer's attention: of the rows of updates, and of the largest group."""
        sizes, few, most = self.sizes, "some short groups", "a long prompt's group"
        short = partial(rows_of, self.shape, *sizes.rows, sizes.prompt, sizes.new)
        size = max(sizes.group_sizes)
        long = partial(rows_of, self.shape, 1, size, sizes.long_prompt, sizes.new)
        for (name, rows), way in product({few: short, most: long}.items(), attention.WAYS):
            run = partial(_attending, attention.WAYS[way], self.shape, rows)
            yield Job("Attention alone", {"rows": name, "way": way}, 5, run)

    def logits(self) -> Iterator[Job]:
        """How many logits at a time."""
        said = self.sizes.rows[0] * self.sizes.rows[1] * self.sizes.new
        ways = {f"{chunk:,} at a time": in_chunks(chunk) for chunk in self.sizes.chunks}
        for name, way in {**ways, "at once, log_softmax": at_once}.items():
            of = {"hidden": self.shape.hidden, "tokens": said, "logits": name}
            run = partial(likelihood, self.shape, said, way, self.flop)
            yield Job("The head alone", of, 5, run)

    def sampling(
        self, batches: Iterable[int], ways: Iterable[str], guess: float = 20
    ) -> Iterator[Job]:
        """Some ways, of some batches."""
        for batch, way in product(batches, ways):
            yield self._speaking(way, self._asked(batch), guess)

    def _asked(self, batch: int) -> Asked:
        sizes = self.sizes
        rows = batch // sizes.prompts
        return Asked(self.shape, sizes.prompts, rows, sizes.prompt, sizes.new, sizes.stride)

    def _speaking(self, way: str, asked: Asked, guess: float) -> Job:
        of = {"model": asked.shape.name, "rows": asked.batch, "way": way}
        return Job("Sampling", of, guess, partial(measured, WAYS[way], asked, self.bandwidth))

    def growing(self) -> Iterator[Job]:
        """Updates by one long prompt and more and more answers."""
        for size, way in product(self.sizes.group_sizes, READINGS):
            rows = partial(rows_of, self.shape, 1, size, self.sizes.long_prompt, self.sizes.new)
            update = Update(READINGS[way], in_chunks(max(self.sizes.chunks)), "yes", rows)
            run = partial(update.measured, self.shape, self.flop)
            yield Job("Updates of a group", {"answers": size, "way": way}, 8, run)

    def speaking_more(self) -> Iterator[Job]:
        """More and more answers to one long prompt."""
        for size, way in product(self.sizes.group_sizes, (GRUPO, GRAPHS, DYNAMIC)):
            length = self.sizes.long_prompt
            asked = Asked(self.shape, 1, size, length, self.sizes.few, self.sizes.stride)
            job = self._speaking(way, asked, 8)
            yield replace(job, table="Sampling of a group", of={"answers": size, "way": way})


def _attending(way: Callable[[Shape, Rows], Said], shape: Shape, rows: Callable[[], Rows]) -> Said:
    return way(shape, rows())


def jobs(sizes: Sizes, flop: float, bandwidth: float) -> Iterator[Job]:
    """Everything; it is a second or two for a model to be made anew."""
    small, large = (Jobs(sizes, shape, flop, bandwidth) for shape in sizes.shapes)
    few, some, many = sizes.batches
    everybody = (GRUPO, GRAPHS, DYNAMIC, STATIC)
    yield from checks(sizes)
    yield from small.attention()
    yield from small.updates("chunks")
    yield from small.sampling((some, many), everybody)
    yield from small.logits()
    yield from large.updates("chunks")
    yield from large.sampling((some, many), everybody[:3])
    yield from small.growing()
    yield from small.sampling([few], everybody)
    yield from small.updates("at once")
    yield from small.speaking_more()
    yield from last(sizes, small, large)


def last(sizes: Sizes, small: Jobs, large: Jobs) -> Iterator[Job]:
    """What matters least, or takes longest."""
    few, some, many = sizes.batches
    yield from small.one_length()
    yield from small.sampling([some], COMPILED, COMPILING)
    yield from small.sampling([many], [BY_DEFAULT])
    yield from large.updates("at once")
    yield from large.sampling([few], (GRUPO, GRAPHS, DYNAMIC, STATIC))
    yield from large.sampling((some, many), [STATIC])


def captions(sizes: Sizes) -> dict[str, str]:
    """What each table is of."""
    prompts, answers = sizes.rows
    each = f"{sizes.prompt} tokens"
    return {
        "Correctness": "Relative to the norm of what it is compared with.",
        "Attention alone": f"One layer's, of heads like those of {sizes.shapes[0].name}: the rows "
        f"of updates, and {max(sizes.group_sizes)} answers to {sizes.long_prompt} tokens.",
        "Updates": f"{prompts} prompts of {each}, {answers} answers to each, of {sizes.new // 2} "
        f"to {sizes.new} tokens; forward and backward, without the optimizer. FLOP: 6 for each "
        "parameter and token read, the head's for tokens of answers alone, and attention's.",
        "Sampling": f"{sizes.prompts} prompts of {each}, equally many rows for each, of "
        f"{sizes.new} tokens. The bound: weights, keys and values read once a step, at the "
        "bandwidth of copying, without the first step.",
        "The head alone": "The head and the log-probabilities, forward and backward.",
        "Updates of a group": f"One prompt of {sizes.long_prompt} tokens, answers of "
        f"{sizes.new // 2} to {sizes.new}; checkpointing, {max(sizes.chunks):,} logits at a time.",
        "Sampling of a group": f"One prompt of {sizes.long_prompt} tokens, {sizes.few} new.",
    }
