"""The simulator's costs, from the measured runs of `benchmarks.simulate`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks.processor_load import LOAD, Step, at_speed, reference_probe
from grupo.distributed.exchange_seconds import exchange_seconds
from grupo.evidence.simulate.costs import (
    BARRIER,
    Costs,
    costs_of_run,
    fit_costs,
    fit_stale_costs,
    measured_lengths,
)

WARMUP = 2  # steps that are not counted; with `tokens_per_step`, those before the steady state
CALIBRATION = ("calibration", "calibration-small", "calibration-stale", "calibration-stale-small")
COPIES = (2, 4)  # independent runs at the same time, which calibrate the contention


def measured_runs(folder: Path, processes: str, setting: str) -> list[list[Step]]:
    """The steps of each repeat of a run, in seconds of processors of the median speed."""
    reference = reference_probe(folder)
    runs = []
    for path in sorted(folder.glob(f"repeat-*/{processes}")):
        loads = map(json.loads, (path / f"{setting}.{LOAD}").read_text().splitlines())
        metrics = map(json.loads, (path / setting / "metrics.jsonl").read_text().splitlines())
        steps = zip(metrics, loads, strict=True)
        runs.append([at_speed(metric | load, reference) for metric, load in steps])
    return runs


def fitted_costs(folder: Path, contention: float) -> Costs:
    """The costs, by the functions of the command, without the time that other programs took."""
    folders = [next(folder.glob(f"repeat-*/ranks-1/{name}")) for name in CALIBRATION]
    lengths = [measured_lengths(run) for run in folders]
    of_run = costs_of_run(folders[0], lengths[0])  # those that do not depend on seconds of steps
    steps = [_steps(folder, name, _share) for name in CALIBRATION[:2]]
    encode, decode = exchange_seconds()
    costs = replace(
        fit_costs(*zip(steps, lengths[:2], strict=True)),
        barrier=BARRIER,
        gradient_sum=of_run.gradient_sum,
        serialize_token=encode,
        deserialize_token=decode,
        log_token=sum(step["seconds"] - step["time/step"] for step in steps[0][1:])
        / sum(step["tokens/trained"] for step in steps[0][1:]),
    )

    stale = [_steps(folder, name, _update_share) for name in CALIBRATION[2:]]
    slowdown = _generation_slowdown(folder, lengths[2], costs) - contention
    costs = replace(costs, generation_slowdown=max(0.0, slowdown))
    return fit_stale_costs(costs, *zip(stale, lengths[2:], strict=True), contention=contention)


def _share(steps: Sequence[Step]) -> float:
    return sum(step["work"] for step in steps) / sum(step["seconds"] for step in steps)


def _update_share(steps: Sequence[Step]) -> float:
    """The share while a thread did not wait for rollouts, which another one generated."""
    waiting = sum(step["time/generate"] for step in steps)
    work, seconds = (sum(step[x] for step in steps) for x in ("thread", "seconds"))
    return work / (seconds - waiting)


def _generation_slowdown(folder: Path, lengths: Mapping[int, Sequence[int]], costs: Costs) -> float:
    """How much longer generation took during updates, in the runs whose rollouts were stale."""
    runs = measured_runs(folder, "ranks-1", CALIBRATION[2])
    steps = [step for run in runs for step in run[WARMUP:-1]]
    work = sum(step["work"] - step["thread"] for step in steps)
    alone = sum(costs.generation(lengths[int(step["step"]) + 1]) for step in steps)
    waiting = sum(step["time/generate"] for step in steps)  # during which nothing was updated
    return (work - alone) / (alone - waiting)


def _steps(folder: Path, setting: str, share: Callable[[Sequence[Step]], float]) -> list[Step]:
    """The first step of a run, which is not fitted, and the others of all repeats.

    Args:
        folder: The folder of the repeats.
        setting: The name of the run.
        share: The share of a processor that the thread had whose phases are timed, from the steps
            of a run that are counted.
    """
    runs = measured_runs(folder, "ranks-1", setting)
    used = [[_with_share(step, share(run[WARMUP:-1])) for step in run] for run in runs]
    return [used[0][0], *(step for run in used for step in run[1:])]


def _with_share(step: Step, share: float) -> Step:
    """The step as if its thread, which had this share of a processor, had had all of it."""
    timed = {name for name in step if name.startswith("time/")} | {"seconds"}
    return step | {name: share * step[name] for name in timed}


def measured_contention(folder: Path) -> float:
    """What the work of a run takes longer beside each other run, by least squares."""
    alone = _step_work(folder, "ranks-1")
    more = [_step_work(folder, f"copies-{n}/*") / alone - 1 for n in COPIES]
    others = [n - 1 for n in COPIES]
    return sum(a * b for a, b in zip(more, others, strict=True)) / sum(n * n for n in others)


def _step_work(folder: Path, processes: str) -> float:
    runs = measured_runs(folder, processes, CALIBRATION[0])
    return fmean(step["work"] for run in runs for step in run[WARMUP:-1])
