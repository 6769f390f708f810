"""The table of all methods on Echo: the same model and number of steps, and three seeds."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import torch

from grupo.catalogue.entries import Entry, methods
from grupo.catalogue.search import find_entry
from grupo.testing.smoke.echo_samplers import GROUP_SIZE
from grupo.testing.smoke.report_card import MIN_GAIN
from grupo.testing.smoke.run import (
    LEARNING_RATE,
    PROMPTS_PER_STEP,
    STEPS,
    SmokeResult,
    train_on_echo,
)
from grupo.training.update.metrics import mean
from grupo.util.statistics import Interval, student_t_mean

SEEDS = (0, 1, 2)
BASELINE = "grpo"

RunKey = tuple[str, int, bool]  # key of the method, seed, whether the sign is flipped


@dataclass(frozen=True)
class MethodResults:
    """The results of one method, one per seed, with and without flipped sign."""

    entry: Entry
    normal: Sequence[SmokeResult]
    flipped: Sequence[SmokeResult]

    @property
    def learns_from_signal(self) -> bool:
        """True if the method gains at every seed, and gains less with its sign flipped."""
        pairs = zip(self.normal, self.flipped, strict=True)
        return all(a.gain > MIN_GAIN and b.gain < a.gain - MIN_GAIN for a, b in pairs)


def run_all(
    num_workers: int = 0, method_keys: Sequence[str] = ()
) -> Iterator[tuple[RunKey, SmokeResult | str]]:
    """Run all smoke runs in parallel and yield each result when it is ready.

    Args:
        num_workers: Number of processes; by default one per CPU core.
        method_keys: Methods to run; all by default.

    Yields:
        The key of a run with its result, or with the text of the exception that it raised.
    """
    keys = [entry.key for entry in methods() if not method_keys or entry.key in method_keys]
    runs = [(key, seed, flipped) for key in keys for seed in SEEDS for flipped in (False, True)]
    context = get_context("spawn")
    with ProcessPoolExecutor(num_workers or os.cpu_count() or 1, context, _use_one_thread) as pool:
        futures = {pool.submit(_run, run): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _use_one_thread() -> None:
    torch.set_num_threads(1)


def _run(run: RunKey) -> SmokeResult | str:
    key, seed, flipped = run
    try:
        return train_on_echo(find_entry(key).method, seed=seed, flipped=flipped)
    except Exception as error:  # the other methods must still run
        return f"{type(error).__name__}: {error}"


def complete_results(results: Mapping[RunKey, SmokeResult]) -> list[MethodResults]:
    """The results of the methods for which every run is there."""
    rows: list[MethodResults] = []
    for key in dict.fromkeys(key for key, _, _ in results):
        runs = [[(key, seed, flipped) for seed in SEEDS] for flipped in (False, True)]
        if all(run in results for part in runs for run in part):
            normal, flipped = ([results[run] for run in part] for part in runs)
            rows.append(MethodResults(find_entry(key), normal, flipped))
    return rows


def results_page(results: Sequence[MethodResults]) -> str:
    """The table as a page of documentation."""
    (baseline,) = [row for row in results if row.entry.key == BASELINE]
    ranked = sorted(results, key=lambda row: -mean(_accuracies_after(row.normal)))
    return "\n\n".join([_introduction(results), _markdown_table(baseline, ranked)]) + "\n"


def _introduction(results: Sequence[MethodResults]) -> str:
    accuracy_before = mean(_accuracies_before(results))
    return (
        f"# Methods on one small task\n\n"
        f"{len(results)} methods, {len(SEEDS)} seeds, {STEPS} steps of {PROMPTS_PER_STEP} prompts"
        f" and groups of {GROUP_SIZE}, learning rate {LEARNING_RATE:g}. A language model of a few"
        f" thousand parameters has to repeat the digit in its prompt. Each method makes its own"
        f" number of updates per step, as its page shows, in at most {PROMPTS_PER_STEP}"
        f" minibatches: a difference to GRPO, which makes one, includes that of the plans.\n\n"
        f"`accuracy` is the fraction of correct answers, sampled after training (before it"
        f" {accuracy_before:.2f}): mean over seeds with its 95 % interval (Student's t, two degrees"
        f" of freedom). `against GRPO` is the mean difference, seed by seed, with its own interval;"
        f" `more` and `less` where that excludes 0. One in twenty of so many comparisons does so by"
        f" chance.\n\n"
        f"`sign flipped` is the accuracy when the sign of the advantage is flipped; where the loss"
        f" does not follow the advantage, or another source has the answer, it is the accuracy when"
        f" environment and sources use another digit. `learns`: at every seed the method gained at"
        f" least {MIN_GAIN:g}, and at least {MIN_GAIN:g} more than with its sign flipped.\n\n"
        f"The table shows differences on this task at this budget only. No method was tuned; some"
        f" are made for conditions that this task lacks: long answers, tools, tags, many updates a"
        f" step, hard tasks.\n\n"
        f"Of methods for images, diffusion text or soft thoughts, only the advantage estimators and"
        f" losses are tried here, with a causal language model. S-GRPO's instruction to answer is"
        f" longer than the context of this model: `tests/methods/test_s_grpo.py` trains it on a"
        f" larger toy model. Numbers differ between processors, within the intervals.\n\n"
        f"Written by `python -m grupo.testing.smoke docs/smoke_training.md`, which trains all"
        f" methods of the package; those that were added afterwards have no row."
    )


def _markdown_table(baseline: MethodResults, results: Sequence[MethodResults]) -> str:
    header = ("method", "accuracy", "against GRPO", "", "sign flipped", "learns")
    lines = [header, ["---"] * len(header), *(_markdown_cells(baseline, row) for row in results)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cells(baseline: MethodResults, result: MethodResults) -> list[str]:
    accuracies = _accuracies_after(result.normal)
    pairs = zip(accuracies, _accuracies_after(baseline.normal), strict=True)
    accuracy = student_t_mean(accuracies)
    difference = student_t_mean([x - y for x, y in pairs])
    return [
        f"[{result.entry.name}](methods/{result.entry.key}.md)",
        f"{accuracy.value:.3f} ± {_half_width(accuracy):.3f}",
        f"{difference.value:+.3f} ± {_half_width(difference):.3f}",
        _significance(difference),
        f"{mean(_accuracies_after(result.flipped)):.3f}",
        "yes" if result.learns_from_signal else "",
    ]


def _significance(difference: Interval) -> str:
    return "more" * (difference.low > 0) + "less" * (difference.high < 0)


def _half_width(interval: Interval) -> float:
    return interval.high - interval.value


def _accuracies_before(results: Sequence[MethodResults]) -> list[float]:
    return [result.accuracy_before for row in results for result in row.normal]


def _accuracies_after(results: Sequence[SmokeResult]) -> list[float]:
    return [result.accuracy_after for result in results]
