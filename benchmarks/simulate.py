"""The simulator against runs: predicted and measured seconds of a step at 1, 2 and 4 processes.

    python -m benchmarks.simulate --folder /tmp/simulate --repeats 2

A small Llama with random weights, whose answers end at different lengths, is trained with one
thread per process. Two runs of one process calibrate the simulator, with and without
`max_staleness`; 2 and 4 independent copies of the first, at the same time, calibrate how much
longer work takes beside other busy processes. The other runs are predicted, for the processors that
other programs left to their steps. Processor seconds are the work of all processes in a step. Costs
are fitted to phases times the share of a processor that their thread had. `--folder` keeps the
runs: a later call adds repeats. `--repeats 0` only writes the table.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import workloads
from benchmarks.grupo_worker import recipe
from benchmarks.models import save_model
from grupo.distributed.exchange_seconds import exchange_seconds
from grupo.recipe import Recipe
from grupo.simulate.costs import (
    MEETING,
    Costs,
    costs_of_run,
    fit_costs,
    fit_stale_costs,
    measured_lengths,
)
from grupo.simulate.events import Machine, Simulation, Workload
from grupo.simulate.lengths import MeasuredLengths
from grupo.training.callbacks import NullCallback
from grupo.training.trainer import train

WORKLOAD = workloads.Workload(
    "8 x 8, 14 prompt tokens, up to 256 new",
    workloads.Shape(256, 5, 688, answers_end=True),
    prompts=8,
    max_new_tokens=256,
)
STEPS = 13
WARMUP = 2  # steps that are not counted; with `tokens_per_step`, those before the steady state
SETTINGS: dict[str, dict[str, Any]] = {
    "calibration": {},
    "calibration-stale": {"max_staleness": 1},
    "step-by-step": {},
    "stale": {"max_staleness": 1},
    "portions": {"max_staleness": 3, "tokens_per_step": 64},
    "portions-ahead": {"max_staleness": 4, "tokens_per_step": 64},
}
CALIBRATION = ("calibration", "calibration-stale")
COPIES = (2, 4)  # independent runs at the same time, which calibrate the contention
MEASURED = tuple(name for name in SETTINGS if name not in CALIBRATION)
RUNS = {1: CALIBRATION + MEASURED, 2: MEASURED, 4: MEASURED[:2]}
COLUMNS = (
    *("processes", "`max_staleness`", "`tokens_per_step`", "predicted", "measured", "error"),
    *("processor seconds predicted", "measured", "error", "used by others"),
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
SIMULATED_STEPS = 200
RESULTS = Path(__file__).parent / "results" / "simulate.md"
PAGE = """# The simulator against runs

`python -m benchmarks.simulate`, {date}: a Llama of 4.2 million parameters with random weights,
float32, 8 prompts with 8 answers of 25 tokens on average and at most 256, runs of {steps} steps,
one thread per process, two processors. Costs are those of two runs of one process, with and
without `max_staleness`, without the time that other programs took. Beside each other independent
run at the same time, a run takes {contention:.1%} more processor time. Seconds are means of a step
over {repeats} repeats; processor seconds are the work of all processes in a step, without waiting.
Other programs used the processors at the same time, by the last column: the predicted seconds are
those on the processors that were left.

{table}
"""
Step = dict[str, float]  # its metrics
Process = subprocess.Popen[str]
LOAD = "load.jsonl"  # what other programs did during the steps of a run
PROCESSORS = len(os.sched_getaffinity(0))


class LoadRecorder(NullCallback):
    """Records the share of the processors that other programs used during each step."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.before = self._measure()

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append a line for the step."""
        now = self._measure()
        seconds, all_programs, own = (b - a for a, b in zip(self.before, now, strict=True))
        others = max(0.0, all_programs - own) / (PROCESSORS * seconds)
        record = {"step": step, "seconds": seconds, "work": own, "others": others}
        with self.file.open("a") as file:
            file.write(json.dumps(record | {"load": os.getloadavg()[0]}) + "\n")
        self.before = self._measure()

    def _measure(self) -> tuple[float, float, float]:
        """Seconds now, of the processors, and of the processors for the ranks of this run."""
        tick = os.sysconf("SC_CLK_TCK")
        user, nice, system, *_ = Path("/proc/stat").read_text().split()[1:4]
        own = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getppid():
                own += int(fields[11]) + int(fields[12])
        return time.perf_counter(), (int(user) + int(nice) + int(system)) / tick, own / tick


def make_recipe(setting: str) -> Recipe:
    """The recipe of a setting."""
    base = recipe(WORKLOAD, "float32")
    return base.replace(max_steps=STEPS, save_every=10_000, **SETTINGS[setting])


def train_settings(settings: Sequence[str], folder: Path) -> None:
    """Train each setting, as one of the ranks."""
    for setting in settings:
        run = folder / setting
        train(make_recipe(setting), run, LoadRecorder(folder / f"{setting}.{LOAD}"))


def measure(folder: Path) -> None:
    """Run every setting at every number of ranks, and the copies."""
    for ranks, settings in RUNS.items():
        command = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
        _wait(_start(folder / f"ranks-{ranks}", settings, command if ranks > 1 else []))
    for copies in COPIES:
        folders = [folder / f"copies-{copies}" / str(i) for i in range(copies)]
        _wait(*[_start(copy, CALIBRATION[:1]) for copy in folders])


def _start(folder: Path, settings: Sequence[str], launcher: Sequence[str] = ()) -> Process:
    folder.mkdir(parents=True)
    arguments = ["benchmarks.simulate", "--train", str(folder), *settings]
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


def measured_runs(folder: Path, processes: str, setting: str) -> list[list[Step]]:
    """The steps of each repeat of a run."""
    runs = []
    for path in sorted(folder.glob(f"repeat-*/{processes}")):
        loads = (path / f"{setting}.{LOAD}").read_text().splitlines()
        metrics = (path / setting / "metrics.jsonl").read_text().splitlines()
        runs.append([json.loads(x) | json.loads(y) for x, y in zip(metrics, loads, strict=True)])
    return runs


def fitted_costs(folder: Path, contention: float) -> Costs:
    """The costs, by the functions of the command, without the time that other programs took."""
    run, stale_run = (next(folder.glob(f"repeat-*/ranks-1/{name}")) for name in CALIBRATION)
    lengths = measured_lengths(run)
    of_run = costs_of_run(run, lengths)  # with those that do not depend on seconds of steps
    costs = replace(fit_costs(_steps(folder, CALIBRATION[0], _share), lengths), meeting=MEETING)
    encode, decode = exchange_seconds()
    costs = replace(
        costs, gradient_sum=of_run.gradient_sum, encode_token=encode, decode_token=decode
    )
    stale_lengths = measured_lengths(stale_run)

    def update_share(step: Step) -> float:
        generated = stale_lengths.get(int(step["step"]) + 1, [0])  # meanwhile
        generation = costs.generation(generated) * (1 + contention)
        return (step["work"] - generation) / step["seconds"]

    stale_steps = _steps(folder, CALIBRATION[1], update_share)
    return fit_stale_costs(costs, stale_steps, stale_lengths, contention)


def _share(step: Step) -> float:
    return step["work"] / step["seconds"]


def _steps(folder: Path, setting: str, share: Callable[[Step], float]) -> list[Step]:
    """The first step of a run, which is not fitted, and the others of all repeats.

    Args:
        folder: The folder of the repeats.
        setting: The name of the run.
        share: The share of a processor that the thread had whose phases are timed.
    """
    runs = measured_runs(folder, "ranks-1", setting)
    steps = [runs[0][0], *(step for run in runs for step in run[1:])]
    return [_with_share(step, share(step)) for step in steps]


def _with_share(step: Step, share: float) -> Step:
    """The step as if its thread, which had this share of a processor, had had all of it."""
    phases = {name: share * value for name, value in step.items() if name.startswith("time/")}
    return step | phases


def measured_contention(folder: Path) -> float:
    """What the work of a run takes longer beside each other run, by least squares."""
    alone = _step_work(folder, "ranks-1")
    more = [_step_work(folder, f"copies-{n}/0") / n / alone - 1 for n in COPIES]
    others = [n - 1 for n in COPIES]
    return sum(a * b for a, b in zip(more, others, strict=True)) / sum(n * n for n in others)


def _step_work(folder: Path, processes: str) -> float:
    runs = measured_runs(folder, processes, CALIBRATION[0])
    return fmean(step["work"] for run in runs for step in run[WARMUP:-1])


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
    drawn = MeasuredLengths([n for step in lengths.values() for n in step], WORKLOAD.max_new_tokens)
    job = Workload(WORKLOAD.prompts, WORKLOAD.group_size, drawn, **SETTINGS[setting])
    counted = slice(WARMUP + job.later_steps, STEPS - job.steps_ahead)
    runs = measured_runs(folder, f"ranks-{machine.trainers}", setting)
    steps = [step for run in runs for step in run[counted]]
    seconds, others, work = (
        fmean(step[x] for step in steps) for x in ("time/step", "others", "work")
    )
    machine = replace(machine, cores=PROCESSORS * (1 - others))
    predicted = Simulation(costs, machine, job).run(SIMULATED_STEPS)
    cells = (
        str(machine.trainers),
        str(job.max_staleness),
        str(job.tokens_per_step or "-"),
        *(f"{predicted.seconds:.3f} s", f"{seconds:.3f} s"),
        f"{predicted.seconds / seconds - 1:+.0%}",
        *(f"{predicted.processor_seconds:.3f} s", f"{work:.3f} s"),
        f"{predicted.processor_seconds / work - 1:+.0%}",
        f"{others:.0%}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure and print, or train as one of the processes that are measured."""
    if sys.argv[1:2] == ["--train"]:
        train_settings(sys.argv[3:], Path(sys.argv[2]))
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
            measure(folder / f"repeat-{repeat}")
        page = PAGE.format(
            date=time.strftime("%Y-%m-%d"),
            repeats=len(list(folder.glob("repeat-*"))),
            steps=STEPS,
            contention=measured_contention(folder),
            table=table(folder),
        )
    options.results.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
