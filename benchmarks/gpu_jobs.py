"""What is measured, what matters most first: a later row may find no time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from benchmarks import gpu_attention as attention
from benchmarks import gpu_check as check
from benchmarks.gpu_board import Job, Measurements
from benchmarks.gpu_readings import (
    FORWARDS,
    SINGLE_LENGTH_FORWARD,
    ForwardFunction,
    PaddedRows,
    random_rows,
)
from benchmarks.gpu_sampling import WAYS, SamplingRequest, measure_sampling
from benchmarks.gpu_sizes import BenchmarkSizes, ModelShape
from benchmarks.gpu_update import (
    CHECKPOINTING,
    LOGP_FUNCTIONS,
    UpdateBenchmark,
    chunked_logp,
    full_logp,
    measure_head,
)

COMPILE_SECONDS = 90.0  # seconds, about
GRUPO, GRAPHS, DYNAMIC, STATIC, DEFAULT_CELLS, *COMPILED = WAYS


def correctness_jobs(sizes: BenchmarkSizes) -> Iterator[Job]:
    """Is it right? Before anything else."""
    table = "Correctness"
    for way in ("packed, parts", "packed, flex"):
        yield Job(table, {"what": f"logits, {way}"}, 5, partial(check.check_logits, way))
        yield Job(table, {"what": f"gradients, {way}"}, 5, partial(check.check_gradients, way))
    for answers in (4, 20):  # another length must not need another kernel
        what = {"what": f"flex in bfloat16 and its gradients, {answers} answers"}
        yield Job(table, what, 5, partial(check.check_kernels, sizes.shapes[0], answers))
    yield Job(table, {"what": "what the engine says"}, 5, check.check_engine)
    yield Job(table, {"what": "what captured steps say"}, 5, check.check_graphs)


@dataclass(frozen=True)
class ShapeJobs:
    """Those of one shape of models; `flop` and `bandwidth` are what the machine can do."""

    sizes: BenchmarkSizes
    shape: ModelShape
    flop: float
    bandwidth: float

    def update_jobs(self, logits: str) -> Iterator[Job]:
        """Every way to read and to keep, of the same rows."""
        for keeping, way in product(CHECKPOINTING, FORWARDS):
            yield self._update_job(way, FORWARDS[way], keeping, logits)

    def single_length_jobs(self) -> Iterator[Job]:
        """flex_attention compiled for that line alone."""
        job = self._update_job("packed, flex of one length", SINGLE_LENGTH_FORWARD, "no", "chunks")
        yield replace(job, expected_seconds=COMPILE_SECONDS)

    def _update_job(self, way: str, reading: ForwardFunction, keeping: str, logits: str) -> Job:
        sizes = self.sizes
        rows = partial(
            random_rows, self.shape, *sizes.update_rows, sizes.prompt_length, sizes.new_tokens
        )
        update = UpdateBenchmark(reading, LOGP_FUNCTIONS[logits], keeping, rows)
        of = {"model": self.shape.name, "way": way, "checkpointing": keeping, "logits": logits}
        return Job("Updates", of, 5, partial(update.measure, self.shape, self.flop))

    def attention_jobs(self) -> Iterator[Job]:
        """One layer's attention: of the rows of updates, and of the largest group."""
        sizes, few, most = self.sizes, "some short groups", "a long prompt's group"
        short = partial(
            random_rows, self.shape, *sizes.update_rows, sizes.prompt_length, sizes.new_tokens
        )
        size = max(sizes.group_sizes)
        long = partial(random_rows, self.shape, 1, size, sizes.long_prompt, sizes.new_tokens)
        for (name, rows), way in product({few: short, most: long}.items(), attention.WAYS):
            run = partial(_run_attention, attention.WAYS[way], self.shape, rows)
            yield Job("Attention alone", {"rows": name, "way": way}, 5, run)

    def logits_jobs(self) -> Iterator[Job]:
        """How many logits at a time."""
        said = self.sizes.update_rows[0] * self.sizes.update_rows[1] * self.sizes.new_tokens
        ways = {f"{chunk:,} at a time": chunked_logp(chunk) for chunk in self.sizes.chunk_sizes}
        for name, way in {**ways, "at once, log_softmax": full_logp}.items():
            of = {"hidden": self.shape.hidden_size, "tokens": said, "logits": name}
            run = partial(measure_head, self.shape, said, way, self.flop)
            yield Job("The head alone", of, 5, run)

    def sampling_jobs(
        self, batches: Iterable[int], ways: Iterable[str], expected_seconds: float = 20
    ) -> Iterator[Job]:
        """Some ways, of some batches."""
        for batch, way in product(batches, ways):
            yield self._sampling_job(way, self._sampling_request(batch), expected_seconds)

    def _sampling_request(self, batch: int) -> SamplingRequest:
        sizes = self.sizes
        rows = batch // sizes.prompts
        return SamplingRequest(
            self.shape, sizes.prompts, rows, sizes.prompt_length, sizes.new_tokens, sizes.stride
        )

    def _sampling_job(self, way: str, request: SamplingRequest, expected_seconds: float) -> Job:
        of = {"model": request.shape.name, "rows": request.batch_size, "way": way}
        return Job(
            "Sampling",
            of,
            expected_seconds,
            partial(measure_sampling, WAYS[way], request, self.bandwidth),
        )

    def group_update_jobs(self) -> Iterator[Job]:
        """Updates by one long prompt and more and more answers."""
        for size, way in product(self.sizes.group_sizes, FORWARDS):
            rows = partial(
                random_rows, self.shape, 1, size, self.sizes.long_prompt, self.sizes.new_tokens
            )
            update = UpdateBenchmark(
                FORWARDS[way], chunked_logp(max(self.sizes.chunk_sizes)), "yes", rows
            )
            run = partial(update.measure, self.shape, self.flop)
            yield Job("Updates of a group", {"answers": size, "way": way}, 8, run)

    def group_sampling_jobs(self) -> Iterator[Job]:
        """More and more answers to one long prompt."""
        for size, way in product(self.sizes.group_sizes, (GRUPO, GRAPHS, DYNAMIC)):
            length = self.sizes.long_prompt
            asked = SamplingRequest(
                self.shape, 1, size, length, self.sizes.short_new_tokens, self.sizes.stride
            )
            job = self._sampling_job(way, asked, 8)
            yield replace(job, table="Sampling of a group", labels={"answers": size, "way": way})


def _run_attention(
    way: Callable[[ModelShape, PaddedRows], Measurements],
    shape: ModelShape,
    rows: Callable[[], PaddedRows],
) -> Measurements:
    return way(shape, rows())


def all_jobs(sizes: BenchmarkSizes, flop: float, bandwidth: float) -> Iterator[Job]:
    """Everything; it is a second or two for a model to be made anew."""
    small, large = (ShapeJobs(sizes, shape, flop, bandwidth) for shape in sizes.shapes)
    few, some, many = sizes.batch_sizes
    everybody = (GRUPO, GRAPHS, DYNAMIC, STATIC)
    yield from correctness_jobs(sizes)
    yield from small.attention_jobs()
    yield from small.update_jobs("chunks")
    yield from small.sampling_jobs((some, many), everybody)
    yield from small.logits_jobs()
    yield from large.update_jobs("chunks")
    yield from large.sampling_jobs((some, many), everybody[:3])
    yield from small.group_update_jobs()
    yield from small.sampling_jobs([few], everybody)
    yield from small.update_jobs("at once")
    yield from small.group_sampling_jobs()
    yield from low_priority_jobs(sizes, small, large)


def low_priority_jobs(sizes: BenchmarkSizes, small: ShapeJobs, large: ShapeJobs) -> Iterator[Job]:
    """What matters least, or takes longest."""
    few, some, many = sizes.batch_sizes
    yield from small.single_length_jobs()
    yield from small.sampling_jobs([some], COMPILED, COMPILE_SECONDS)
    yield from small.sampling_jobs([many], [DEFAULT_CELLS])
    yield from large.update_jobs("at once")
    yield from large.sampling_jobs([few], (GRUPO, GRAPHS, DYNAMIC, STATIC))
    yield from large.sampling_jobs((some, many), [STATIC])


def captions(sizes: BenchmarkSizes) -> dict[str, str]:
    """What each table is of."""
    prompts, answers = sizes.update_rows
    each = f"{sizes.prompt_length} tokens"
    return {
        "Correctness": "Relative to the norm of what it is compared with.",
        "Attention alone": f"One layer's, of heads like those of {sizes.shapes[0].name}: the rows "
        f"of updates, and {max(sizes.group_sizes)} answers to {sizes.long_prompt} tokens.",
        "Updates": f"{prompts} prompts of {each}, {answers} answers to each, of"
        f" {sizes.new_tokens // 2} to {sizes.new_tokens} tokens; forward and backward, without the"
        " optimizer. FLOP: 6 for each parameter and prefilled token, the head's for tokens of"
        " answers only, and attention's.",
        "Sampling": f"{sizes.prompts} prompts of {each}, equally many rows for each, of "
        f"{sizes.new_tokens} tokens. The bound: weights, keys and values read once a step, at the "
        "bandwidth of copying, without the first step.",
        "The head alone": "The head and the log-probabilities, forward and backward.",
        "Updates of a group": f"One prompt of {sizes.long_prompt} tokens, answers of "
        f"{sizes.new_tokens // 2} to {sizes.new_tokens}; checkpointing,"
        f" {max(sizes.chunk_sizes):,} logits at a time.",
        "Sampling of a group": f"One prompt of {sizes.long_prompt} tokens,"
        f" {sizes.short_new_tokens} new.",
    }
