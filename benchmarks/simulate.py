"""The simulator against runs: predicted and measured seconds of a step at 1, 2 and 4 processes.

    python -m benchmarks.simulate --folder /tmp/simulate --repeats 2

A small Llama with random weights, whose answers end at different lengths, is trained with one
thread per process. Four runs of one process calibrate the simulator: one like those predicted, one
with a quarter of the prompts, and these two with `max_staleness`; 2 and 4 independent copies of the
first, at the same time, calibrate how much longer work takes beside other busy processes. The other
runs are predicted, for the processors that other programs left to their steps. Processor seconds
are the work of all processes in a step. Costs are fitted to phases times the share of a processor
that their thread had. All seconds are those on processors of the median speed (`processor_load`).
`--folder` keeps the runs: a later call adds repeats. `--repeats 0` only writes the table.
"""

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.grupo_worker import recipe
from benchmarks.models import save_model
from benchmarks.processor_load import LOAD, LoadRecorder, use_processors
from benchmarks.simulate_costs import (
    CALIBRATION,
    COPIES,
    WARMUP,
    fitted_costs,
    measured_contention,
    measured_runs,
)
from grupo.distributed.start import number_of_ranks
from grupo.evidence.simulate.costs import Costs, measured_lengths
from grupo.evidence.simulate.events import Machine, Simulation, Workload
from grupo.recipe import Recipe
from grupo.training.start import run_training

WORKLOAD = workloads.Workload(
    "8 x 8, 14 prompt tokens, up to 256 new",
    workloads.Shape(256, 5, 688, answers_end=True),
    prompts=8,
    max_new_tokens=256,
)
STEPS = 13
SETTINGS: dict[str, dict[str, Any]] = {
    "calibration": {},
    "calibration-small": {"prompts_per_step": 2, "max_steps": 25},
    "calibration-stale": {"max_staleness": 1},
    "calibration-stale-small": {"max_staleness": 1, "prompts_per_step": 2, "max_steps": 25},
    "step-by-step": {},
    "stale": {"max_staleness": 1},
    "portions": {"max_staleness": 3, "tokens_per_step": 64},
    "portions-ahead": {"max_staleness": 4, "tokens_per_step": 64},
}
SEQUENTIAL = ("calibration", "calibration-small", "step-by-step", "portions")
MEASURED = tuple(name for name in SETTINGS if name not in CALIBRATION)
RUNS = {1: CALIBRATION + MEASURED, 2: MEASURED, 4: MEASURED[:2]}
COLUMNS = (
    *("processes", "`max_staleness`", "`tokens_per_step`", "predicted", "measured", "error"),
    *("processor seconds predicted", "measured", "error", "used by others", "steps"),
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
RESULTS = Path(__file__).parent / "results" / "simulate.md"
PAGE = """# The simulator against runs

`python -m benchmarks.simulate`, {date}: a Llama of 4.2 million parameters with random weights,
float32, 8 prompts with 8 answers of 25 tokens on average and at most 256, runs of {steps} steps,
one thread per process, two processors. Costs are those of four runs of one process, with 8 and with
2 prompts, with and without `max_staleness`, without the time that other programs took. Beside each
other independent run at the same time, a run takes {contention:.1%} more processor time. Seconds
are means of a step over {repeats} repeats, from one step's end to the next one's, on processors of
the median speed; processor seconds are the work of all processes in a step, without waiting. Steps
during which one processor was more than {imbalance:.0%} faster than the other are left out. The
predictions are for the answers of the runs, and for the processors that other programs left.

{table}
"""
Process = subprocess.Popen[str]
MAX_IMBALANCE = 0.25  # of the speeds of two processors, above which a step is not compared
PROCESSORS = len(os.sched_getaffinity(0))


@dataclass
class LengthsInOrder:
    """Tokens of the rollouts of a run, in their order: those of the runs that are predicted."""

    lengths: Sequence[int]
    limit: int
    drawn: int = 0

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        indices = np.arange(self.drawn, self.drawn + count) % len(self.lengths)
        self.drawn += count
        return np.asarray(self.lengths)[indices]


def make_recipe(setting: str) -> Recipe:
    """The recipe of a setting."""
    options = {"max_steps": STEPS, "save_every": 10_000} | SETTINGS[setting]
    return recipe(WORKLOAD, "float32").replace(**options)


def train_settings(settings: Sequence[str], folder: Path, processor: int) -> None:
    """Train each setting, as one of the ranks.

    Args:
        settings: Their names.
        folder: The folder of the runs.
        processor: The one on which a single rank generates and updates in turn, so that its speed
            is known.
    """
    everywhere = os.sched_getaffinity(0)
    ranks = number_of_ranks()
    for setting in settings:
        is_pinned = ranks == 1 and setting in SEQUENTIAL
        use_processors({sorted(everywhere)[processor]} if is_pinned else everywhere)
        gc.collect()  # else a run pays for the objects of those before it, in one pause of 0.4 s
        load = LoadRecorder(folder / f"{setting}.{LOAD}", ranks)
        run_training(make_recipe(setting), folder / setting, load)


def measure(folder: Path, repeat: int) -> None:
    """Run every setting at every number of ranks, and the copies."""
    for ranks, settings in RUNS.items():
        command = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
        launcher = command if ranks > 1 else []
        _wait(_start(folder / f"ranks-{ranks}", settings, repeat, launcher))
    for copies in COPIES:
        folders = [folder / f"copies-{copies}" / str(i) for i in range(copies)]
        _wait(*[_start(copy, CALIBRATION[:1], repeat + i) for i, copy in enumerate(folders)])


def _start(
    folder: Path, settings: Sequence[str], processor: int, launcher: Sequence[str] = ()
) -> Process:
    folder.mkdir(parents=True)
    processor %= PROCESSORS
    arguments = ["benchmarks.simulate", "--train", str(folder), str(processor), *settings]
    return subprocess.Popen(
        [sys.executable, "-m", *launcher, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait(*processes: Process) -> None:
    messages = [process.communicate()[1] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError("\n".join(messages))


def table(folder: Path) -> str:
    """Predicted and measured seconds of a step, and seconds of the processors."""
    contention = measured_contention(folder)
    costs = fitted_costs(folder, contention)
    rows = [HEAD]
    for ranks, settings in RUNS.items():
        machine = Machine(ranks, cores=PROCESSORS, contention=contention)
        for setting in settings:
            if setting in MEASURED:
                rows.append(_row(folder, costs, machine, setting))
    return "\n".join(rows)


def _row(folder: Path, costs: Costs, machine: Machine, setting: str) -> str:
    lengths = measured_lengths(next(folder.glob(f"repeat-*/ranks-1/{CALIBRATION[0]}")))
    drawn = LengthsInOrder([n for step in lengths.values() for n in step], WORKLOAD.max_new_tokens)
    job = Workload(WORKLOAD.prompts, WORKLOAD.group_size, drawn, **SETTINGS[setting])
    counted = slice(WARMUP + job.later_steps, STEPS - job.steps_ahead)
    runs = measured_runs(folder, f"ranks-{machine.trainers}", setting)
    steps = [s for run in runs for s in run[counted] if s["imbalance"] < MAX_IMBALANCE]
    seconds, others, work = (
        fmean(step[x] for step in steps) for x in ("seconds", "others", "work")
    )
    machine = replace(machine, cores=steps[0]["processors"] * (1 - others))
    predicted = Simulation(costs, machine, job).run(
        counted.stop - counted.start, WARMUP - job.steps_ahead
    )
    cells = (
        str(machine.trainers),
        str(job.max_staleness),
        str(job.tokens_per_step or "-"),
        *(f"{predicted.seconds:.3f} s", f"{seconds:.3f} s"),
        f"{predicted.seconds / seconds - 1:+.0%}",
        *(f"{predicted.processor_seconds:.3f} s", f"{work:.3f} s"),
        f"{predicted.processor_seconds / work - 1:+.0%}",
        f"{others:.0%}",
        str(len(steps)),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure and print, or train as one of the processes that are measured."""
    if sys.argv[1:2] == ["--train"]:
        train_settings(sys.argv[4:], Path(sys.argv[2]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS, help="a page with the table")
    options = parser.parse_args()
    save_model(WORKLOAD.shape)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        first = len(list(folder.glob("repeat-*")))
        for repeat in range(first, first + options.repeats):
            measure(folder / f"repeat-{repeat}", repeat)
        page = PAGE.format(
            date=time.strftime("%Y-%m-%d"),
            repeats=len(list(folder.glob("repeat-*"))),
            steps=STEPS,
            imbalance=MAX_IMBALANCE,
            contention=measured_contention(folder),
            table=table(folder),
        )
    options.results.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
