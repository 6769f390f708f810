"""All methods on Echo: the same model, the same number of steps, three seeds, and what differs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import torch

from grupo.catalogue import Entry, find_entry, methods
from grupo.core.statistics import Interval, student_t_mean
from grupo.testing.smoke.report_card import MIN_GAIN
from grupo.testing.smoke.run import (
    GROUP_SIZE,
    LEARNING_RATE,
    PROMPTS_PER_STEP,
    STEPS,
    SmokeResult,
    train_on_echo,
)
from grupo.training.metrics import mean

SEEDS = (0, 1, 2)
BASELINE = "grpo"

RunKey = tuple[str, int, bool]  # a method, a seed, whether its signal is turned round


@dataclass(frozen=True)
class MethodResults:
    """A method's trials, by seed, and those with its signal turned round."""

    entry: Entry
    normal: Sequence[SmokeResult]
    flipped: Sequence[SmokeResult]

    @property
    def learns_from_signal(self) -> bool:
        """Does it gain under every seed what it does not gain turned round?"""
        pairs = zip(self.normal, self.flipped, strict=True)
        return all(a.gain > MIN_GAIN and b.gain < a.gain - MIN_GAIN for a, b in pairs)


def run_all(
    num_workers: int = 0, method_keys: Sequence[str] = ()
) -> Iterator[tuple[RunKey, SmokeResult | str]]:
    """Every trial as it ends; a text where it raised."""
    keys = [entry.key for entry in methods() if not method_keys or entry.key in method_keys]
    jobs = [(key, seed, turned) for key in keys for seed in SEEDS for turned in (False, True)]
    spawned = get_context("spawn")
    with ProcessPoolExecutor(num_workers or os.cpu_count() or 1, spawned, _use_one_thread) as pool:
        running = {pool.submit(_run_job, job): job for job in jobs}
        for done in as_completed(running):
            yield running[done], done.result()


def _use_one_thread() -> None:
    torch.set_num_threads(1)


def _run_job(job: RunKey) -> SmokeResult | str:
    key, seed, turned = job
    try:
        return train_on_echo(find_entry(key).method, seed=seed, flipped=turned)
    except Exception as error:  # the others are still to be tried
        return f"{type(error).__name__}: {error}"


def complete_results(results: Mapping[RunKey, SmokeResult]) -> list[MethodResults]:
    """The methods all of whose trials ended."""
    keys = dict.fromkeys(key for key, _, _ in results)
    whole = [k for k in keys if all((k, s, t) in results for s in SEEDS for t in (False, True))]
    return [
        MethodResults(find_entry(k), *([results[k, s, t] for s in SEEDS] for t in (False, True)))
        for k in whole
    ]


def results_page(results: Sequence[MethodResults]) -> str:
    """The table as a page of documentation."""
    (base,) = [row for row in results if row.entry.key == BASELINE]
    ranked = sorted(results, key=lambda row: -mean(_accuracies_after(row.normal)))
    return "\n\n".join([_introduction(results), _markdown_table(base, ranked)]) + "\n"


def _introduction(results: Sequence[MethodResults]) -> str:
    return (
        f"# All methods on one small task\n\n"
        f"{len(results)} methods, {len(SEEDS)} seeds, {STEPS} steps of {PROMPTS_PER_STEP} prompts and groups"
        f" of {GROUP_SIZE}, learning rate {LEARNING_RATE:g}, one language model of a few thousand numbers that is"
        f" asked to say the digit it was just shown.\n\n"
        f"`share` is the share of right answers, sampled after training (before it"
        f" {mean(_accuracies_before(results)):.2f}), the mean of the seeds and its 95 % interval (Student's t,"
        f" two degrees of freedom). `against GRPO` is the mean difference, seed by seed, with its"
        f" own interval; `more` and `less` where that excludes 0. Of so many comparisons one in"
        f" twenty does so by chance.\n\n"
        f"`turned round` is the share when the sign of the advantage is flipped; where the loss"
        f" does not read it, or somebody knows the answer, when all hold another digit for right."
        f" `proven`: under every seed it gained at least {MIN_GAIN:g} more than turned round, and"
        f" gained {MIN_GAIN:g} at all.\n\n"
        f"It says what differs on this task at this budget, and nothing of any other. No method was"
        f" tuned; some are made for what this task has not got: long answers, tools, tags, many"
        f" updates a step, hard tasks.\n\n"
        f"Written by `python -m grupo.testing.smoke docs/proving.md`."
    )


def _markdown_table(baseline: MethodResults, results: Sequence[MethodResults]) -> str:
    head = ("method", "share", "against GRPO", "", "turned round", "proven")
    lines = [head, ["---"] * len(head), *(_markdown_cells(baseline, row) for row in results)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cells(baseline: MethodResults, result: MethodResults) -> list[str]:
    pairs = zip(_accuracies_after(result.normal), _accuracies_after(baseline.normal), strict=True)
    share, off = (
        student_t_mean(_accuracies_after(result.normal)),
        student_t_mean([x - y for x, y in pairs]),
    )
    return [
        f"[{result.entry.name}](methods/{result.entry.key}.md)",
        f"{share.value:.3f} ± {_half_width(share):.3f}",
        f"{off.value:+.3f} ± {_half_width(off):.3f}",
        _significance(off),
        f"{mean(_accuracies_after(result.flipped)):.3f}",
        "yes" if result.learns_from_signal else "",
    ]


def _significance(difference: Interval) -> str:
    return "more" * (difference.low > 0) + "less" * (difference.high < 0)


def _half_width(interval: Interval) -> float:
    return interval.high - interval.value


def _accuracies_before(results: Sequence[MethodResults]) -> list[float]:
    return [trial.accuracy_before for row in results for trial in row.normal]


def _accuracies_after(results: Sequence[SmokeResult]) -> list[float]:
    return [trial.accuracy_after for trial in results]
