"""The jobs of the GPU benchmark, most important first: the deadline may drop later ones."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from benchmarks import gpu_attention as attention
from benchmarks import gpu_check as check
from benchmarks.gpu_board import Job, Measurements
from benchmarks.gpu_forward import (
    FORWARDS,
    SINGLE_LENGTH_FORWARD,
    ForwardFunction,
    PaddedRows,
    random_rows,
)
from benchmarks.gpu_sampling import SAMPLING_FUNCTIONS, SamplingRequest, measure_sampling
from benchmarks.gpu_sizes import BenchmarkSizes, ModelShape
from benchmarks.gpu_update import (
    CHECKPOINTING,
    LOGP_FUNCTIONS,
    UpdateBenchmark,
    chunked_logp,
    full_logp,
    measure_head,
)

COMPILE_SECONDS = 90.0  # approximate
GRUPO, CAPTURED, DYNAMIC, STATIC, DEFAULT_CONTEXT, *COMPILED = SAMPLING_FUNCTIONS


def correctness_jobs(sizes: BenchmarkSizes) -> Iterator[Job]:
    """Yield the correctness checks."""
    checks: dict[str, Callable[[], Measurements]] = {}
    for forward in ("packed, blocks", "packed, flex"):
        checks[f"logits, {forward}"] = partial(check.check_logits, forward)
        checks[f"gradients, {forward}"] = partial(check.check_gradients, forward)
    for answers in (4, 20):  # another length must not need another kernel
        name = f"flex in bfloat16 and its gradients, {answers} answers"
        checks[name] = partial(check.check_kernels, sizes.shapes[0], answers)
    checks["log-probabilities of the engine"] = check.check_engine
    checks["log-probabilities of captured steps"] = check.check_graphs
    for name, run in checks.items():
        yield Job("Correctness", {"check": name}, 5, run)


@dataclass(frozen=True)
class ShapeJobs:
    """The jobs of one model shape.

    Args:
        sizes: the sizes of batches.
        shape: the shape of the model.
        flop: FLOP/s of a bfloat16 matrix product on this machine.
        bandwidth: bytes/s of a copy on this machine, read and write.
    """

    sizes: BenchmarkSizes
    shape: ModelShape
    flop: float
    bandwidth: float

    def update_jobs(self, logits: str) -> Iterator[Job]:
        """Yield updates of the same rows, by every forward pass with and without checkpointing."""
        for checkpointing, name in product(CHECKPOINTING, FORWARDS):
            yield self._update_job(name, FORWARDS[name], checkpointing, logits)

    def single_length_jobs(self) -> Iterator[Job]:
        """Yield the update with flex_attention compiled for its exact length."""
        job = self._update_job("packed, flex of one length", SINGLE_LENGTH_FORWARD, "no", "chunks")
        yield replace(job, expected_seconds=COMPILE_SECONDS)

    def _update_rows(self) -> Callable[[], PaddedRows]:
        sizes = self.sizes
        return partial(
            random_rows, self.shape, *sizes.update_rows, sizes.prompt_length, sizes.new_tokens
        )

    def _group_rows(self, group_size: int) -> Callable[[], PaddedRows]:
        sizes = self.sizes
        return partial(random_rows, self.shape, 1, group_size, sizes.long_prompt, sizes.new_tokens)

    def _update_job(
        self, name: str, forward: ForwardFunction, checkpointing: str, logits: str
    ) -> Job:
        update = UpdateBenchmark(
            forward, LOGP_FUNCTIONS[logits], checkpointing, self._update_rows()
        )
        labels = {
            "model": self.shape.name,
            "forward": name,
            "checkpointing": checkpointing,
            "logits": logits,
        }
        return Job("Updates", labels, 5, partial(update.measure, self.shape, self.flop))

    def attention_jobs(self) -> Iterator[Job]:
        """Yield one layer's attention, for the rows of updates and for the largest group."""
        batches = {
            "short groups": self._update_rows(),
            "group of a long prompt": self._group_rows(max(self.sizes.group_sizes)),
        }
        functions = attention.ATTENTION_FUNCTIONS
        for (batch, rows), name in product(batches.items(), functions):
            run = partial(_run_attention, functions[name], self.shape, rows)
            yield Job("Attention alone", {"rows": batch, "attention": name}, 5, run)

    def logits_jobs(self) -> Iterator[Job]:
        """Yield the LM head with several chunk sizes of the logits, and with full logits."""
        prompts, answers = self.sizes.update_rows
        tokens = prompts * answers * self.sizes.new_tokens
        functions = {f"chunks of {n:,}": chunked_logp(n) for n in self.sizes.chunk_sizes}
        functions["full, log_softmax"] = full_logp
        for name, logp in functions.items():
            labels = {"hidden": self.shape.hidden_size, "tokens": tokens, "logits": name}
            run = partial(measure_head, self.shape, tokens, logp, self.flop)
            yield Job("LM head alone", labels, 5, run)

    def sampling_jobs(
        self, batch_sizes: Iterable[int], names: Iterable[str], expected_seconds: float = 20
    ) -> Iterator[Job]:
        """Yield sampling of every batch size by every named implementation."""
        for batch_size, name in product(batch_sizes, names):
            yield self._sampling_job(name, self._sampling_request(batch_size), expected_seconds)

    def _sampling_request(self, batch_size: int) -> SamplingRequest:
        sizes = self.sizes
        rows = batch_size // sizes.prompts
        return SamplingRequest(
            self.shape, sizes.prompts, rows, sizes.prompt_length, sizes.new_tokens
        )

    def _sampling_job(self, name: str, request: SamplingRequest, expected_seconds: float) -> Job:
        labels = {"model": request.shape.name, "rows": request.batch_size, "sampler": name}
        run = partial(measure_sampling, SAMPLING_FUNCTIONS[name], request, self.bandwidth)
        return Job("Sampling", labels, expected_seconds, run)

    def group_update_jobs(self) -> Iterator[Job]:
        """Yield updates of one long prompt with increasing group size."""
        logp = chunked_logp(max(self.sizes.chunk_sizes))
        for size, name in product(self.sizes.group_sizes, FORWARDS):
            update = UpdateBenchmark(FORWARDS[name], logp, "yes", self._group_rows(size))
            run = partial(update.measure, self.shape, self.flop)
            yield Job("Updates of a group", {"answers": size, "forward": name}, 8, run)

    def group_sampling_jobs(self) -> Iterator[Job]:
        """Yield sampling for one long prompt with increasing group size."""
        sizes = self.sizes
        for size, name in product(sizes.group_sizes, (GRUPO, CAPTURED, DYNAMIC)):
            request = SamplingRequest(
                self.shape, 1, size, sizes.long_prompt, sizes.short_new_tokens
            )
            job = self._sampling_job(name, request, 8)
            labels = {"answers": size, "sampler": name}
            yield replace(job, table="Sampling of a group", labels=labels)


def _run_attention(
    attention_function: Callable[[ModelShape, PaddedRows], Measurements],
    shape: ModelShape,
    rows: Callable[[], PaddedRows],
) -> Measurements:
    return attention_function(shape, rows())


def all_jobs(sizes: BenchmarkSizes, flop: float, bandwidth: float) -> Iterator[Job]:
    """Yield all jobs; few changes of the model, because building one takes seconds."""
    small, large = (ShapeJobs(sizes, shape, flop, bandwidth) for shape in sizes.shapes)
    few, medium, many = sizes.batch_sizes
    main_samplers = (GRUPO, CAPTURED, DYNAMIC, STATIC)
    yield from correctness_jobs(sizes)
    yield from small.attention_jobs()
    yield from small.update_jobs("chunks")
    yield from small.sampling_jobs((medium, many), main_samplers)
    yield from small.logits_jobs()
    yield from large.update_jobs("chunks")
    yield from large.sampling_jobs((medium, many), main_samplers[:3])
    yield from small.group_update_jobs()
    yield from small.sampling_jobs([few], main_samplers)
    yield from small.update_jobs("full")
    yield from small.group_sampling_jobs()
    yield from low_priority_jobs(sizes, small, large)


def low_priority_jobs(sizes: BenchmarkSizes, small: ShapeJobs, large: ShapeJobs) -> Iterator[Job]:
    """Yield the least important and the slowest jobs."""
    few, medium, many = sizes.batch_sizes
    yield from small.single_length_jobs()
    yield from small.sampling_jobs([medium], COMPILED, COMPILE_SECONDS)
    yield from small.sampling_jobs([many], [DEFAULT_CONTEXT])
    yield from large.update_jobs("full")
    yield from large.sampling_jobs([few], (GRUPO, CAPTURED, DYNAMIC, STATIC))
    yield from large.sampling_jobs((medium, many), [STATIC])


def captions(sizes: BenchmarkSizes) -> dict[str, str]:
    """Return the caption of each table."""
    prompts, answers = sizes.update_rows
    prompt_length = f"{sizes.prompt_length} tokens"
    answer_length = f"{sizes.new_tokens // 2} to {sizes.new_tokens} tokens"
    return {
        "Correctness": "Errors relative to the norm of the reference.",
        "Attention alone": f"One layer with the heads of {sizes.shapes[0].name}: the rows "
        f"of updates, and {max(sizes.group_sizes)} answers to {sizes.long_prompt} prompt tokens.",
        "Updates": f"{prompts} prompts of {prompt_length}, {answers} answers to each, of "
        f"{answer_length}; forward and backward, without the optimizer. FLOP: 6 per parameter "
        "and evaluated token, 6 per parameter of the head and answer token, those of attention.",
        "Sampling": f"{sizes.prompts} prompts of {prompt_length}, the same number of rows "
        f"for each, {sizes.new_tokens} new tokens. The bound: weights, keys and values read "
        "once per step at the copy bandwidth, without the first step.",
        "LM head alone": "Logits and log-probabilities, forward and backward.",
        "Updates of a group": f"One prompt of {sizes.long_prompt} tokens, answers of "
        f"{answer_length}; checkpointing, {max(sizes.chunk_sizes):,} logits per chunk.",
        "Sampling of a group": f"One prompt of {sizes.long_prompt} tokens, "
        f"{sizes.short_new_tokens} new tokens.",
    }
