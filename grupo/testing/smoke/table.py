"""All methods on Echo: the same model, the same number of steps, three seeds, and what differs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import torch

from grupo.catalogue import Entry, find, methods
from grupo.core.statistics import Interval, student_mean
from grupo.testing.smoke.report_card import MARGIN
from grupo.testing.smoke.run import GROUP, LR, PROMPTS, STEPS, Trial, tried
from grupo.training.metrics import mean

SEEDS = (0, 1, 2)
BASE = "grpo"

Job = tuple[str, int, bool]  # a method, a seed, whether its signal is turned round


@dataclass(frozen=True)
class Row:
    """A method's trials, by seed, and those with its signal turned round."""

    entry: Entry
    plain: Sequence[Trial]
    turned: Sequence[Trial]

    @property
    def proven(self) -> bool:
        """Does it gain under every seed what it does not gain turned round?"""
        pairs = zip(self.plain, self.turned, strict=True)
        return all(a.gain > MARGIN and b.gain < a.gain - MARGIN for a, b in pairs)


def trials(processes: int = 0, only: Sequence[str] = ()) -> Iterator[tuple[Job, Trial | str]]:
    """Every trial as it ends; a text where it raised."""
    keys = [entry.key for entry in methods() if not only or entry.key in only]
    jobs = [(key, seed, turned) for key in keys for seed in SEEDS for turned in (False, True)]
    spawned = get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count() or 1, spawned, _alone) as pool:
        running = {pool.submit(_try, job): job for job in jobs}
        for done in as_completed(running):
            yield running[done], done.result()


def _alone() -> None:
    torch.set_num_threads(1)


def _try(job: Job) -> Trial | str:
    key, seed, turned = job
    try:
        return tried(find(key).method, seed=seed, turned=turned)
    except Exception as error:  # the others are still to be tried
        return f"{type(error).__name__}: {error}"


def rows(done: Mapping[Job, Trial]) -> list[Row]:
    """The methods all of whose trials ended."""
    keys = dict.fromkeys(key for key, _, _ in done)
    whole = [k for k in keys if all((k, s, t) in done for s in SEEDS for t in (False, True))]
    return [Row(find(k), *([done[k, s, t] for s in SEEDS] for t in (False, True))) for k in whole]


def page(table: Sequence[Row]) -> str:
    """The table as a page of documentation."""
    (base,) = [row for row in table if row.entry.key == BASE]
    ranked = sorted(table, key=lambda row: -mean(_afters(row.plain)))
    return "\n\n".join([_said(table), _lines(base, ranked)]) + "\n"


def _said(table: Sequence[Row]) -> str:
    return (
        f"# All methods on one small task\n\n"
        f"{len(table)} methods, {len(SEEDS)} seeds, {STEPS} steps of {PROMPTS} prompts and groups"
        f" of {GROUP}, learning rate {LR:g}, one language model of a few thousand numbers that is"
        f" asked to say the digit it was just shown.\n\n"
        f"`share` is the share of right answers, sampled after training (before it"
        f" {mean(_befores(table)):.2f}), the mean of the seeds and its 95 % interval (Student's t,"
        f" two degrees of freedom). `against GRPO` is the mean difference, seed by seed, with its"
        f" own interval; `more` and `less` where that excludes 0. Of so many comparisons one in"
        f" twenty does so by chance.\n\n"
        f"`turned round` is the share when the sign of the advantage is flipped; where the loss"
        f" does not read it, or somebody knows the answer, when all hold another digit for right."
        f" `proven`: under every seed it gained at least {MARGIN:g} more than turned round, and"
        f" gained {MARGIN:g} at all.\n\n"
        f"It says what differs on this task at this budget, and nothing of any other. No method was"
        f" tuned; some are made for what this task has not got: long answers, tools, tags, many"
        f" updates a step, hard tasks.\n\n"
        f"Written by `python -m grupo.testing.smoke docs/proving.md`."
    )


def _lines(base: Row, ranked: Sequence[Row]) -> str:
    head = ("method", "share", "against GRPO", "", "turned round", "proven")
    lines = [head, ["---"] * len(head), *(_line(base, row) for row in ranked)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(base: Row, row: Row) -> list[str]:
    pairs = zip(_afters(row.plain), _afters(base.plain), strict=True)
    share, off = student_mean(_afters(row.plain)), student_mean([x - y for x, y in pairs])
    return [
        f"[{row.entry.name}](methods/{row.entry.key}.md)",
        f"{share.value:.3f} ± {_reach(share):.3f}",
        f"{off.value:+.3f} ± {_reach(off):.3f}",
        _differs(off),
        f"{mean(_afters(row.turned)):.3f}",
        "yes" if row.proven else "",
    ]


def _differs(off: Interval) -> str:
    return "more" * (off.low > 0) + "less" * (off.high < 0)


def _reach(one: Interval) -> float:
    return one.high - one.value


def _befores(table: Sequence[Row]) -> list[float]:
    return [trial.before for row in table for trial in row.plain]


def _afters(some: Sequence[Trial]) -> list[float]:
    return [trial.after for trial in some]
