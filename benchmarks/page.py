"""Render benchmark results as a page with figures: python -m benchmarks.page RESULTS.json."""

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.targets import PEAK_FRAC, SPEEDUP
from benchmarks.workloads import REAL_WORKLOADS, WORKLOADS

Result = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Result]]  # by workload, then precision
MEASUREMENTS = "seconds: grupo|TRL|sampling: grupo|TRL|update: grupo|TRL|tokens: grupo|TRL|"
MEASUREMENTS += "peak GB: grupo|TRL|others|pairs"
SERIES = {"group": "rollouts in a group", "prompt": "prompt tokens", "size": "million parameters"}

EXPLANATION = """`make bench` generates this page. Both libraries train the same model on the same
prompts with the same reward, precision and number of threads; their steps alternate. A step
samples, scores and updates once: Adam, no KL penalty, gradient norm 1, temperature 1. `python -m
benchmarks.check` shows that both libraries compute the same gradient from the same tokens.

* times as fast: the median over pairs of steps of TRL's seconds divided by grupo's, with a 95 %
  bootstrap interval over pairs. Seconds are medians; sampling includes scoring.
* peak: the maximum resident memory of the process.
* others: the mean number of cores busy with other programs. Pairs above 0.2 were repeated. Do not
  trust a row above 0.2: other programs slow the two libraries by different factors.
* bfloat16: few pairs. On a processor without bfloat16 instructions TRL uses a slow emulation, while
  grupo computes in float32 and reports that.
* TRL uses its fastest settings according to `python -m benchmarks.tune`: no checkpointing, no logs,
  no saves, one micro-batch per step except in prompt-2048, agent-apart and real-long. On a
  processor TRL also evaluates the LM head at all prompt tokens.
* short-signal: in about 30 % of the groups all rewards are equal, so their gradient is zero.
* agent: eight turns, each after an observation of 64 tokens. TRL generates them in a `rollout_func`
  with its own `generate`, and trains on each rollout as one row, like grupo.
* agent-apart: TRL gets every turn as a separate task, whose prompt is the context with random words
  in place of earlier answers: 16 prompts in groups of 8, compared with 2 groups of 8 rollouts of 8
  turns for grupo. The number of sampled tokens is equal; TRL trains on 8 times as many rows.
"""

REAL_EXPLANATION = """A Llama of the shape of SmolLM2-135M with random weights: 30 layers of 576
dimensions, 134.5 million weights, a vocabulary of 49,152 with a tied LM head. Answers run to the
limit. TRL has one micro-batch per step, and four of 8 rows in real-long, where 16 rows would take
about 24 GB. real-lora: both libraries train adapters of rank 16 on all linear layers.
"""


def write_page(path_stem: Path) -> None:
    """Write `path_stem`.md and its figures from `path_stem`.json."""
    results: Results = json.loads(path_stem.with_suffix(".json").read_text())
    real = {name: result for name, result in results.items() if name in REAL_WORKLOADS}
    small = {name: result for name, result in results.items() if name not in real}
    single = {name: result for name, result in small.items() if not _series_name(name)}
    text = [_page_header(results)]
    if single:
        text += [results_table(single), f"\n![Times as fast]({path_stem.name}.svg)\n"]
        _plot_ratios(path_stem.with_suffix(".svg"), single)
    if real:
        text += [f"\n## A real model\n\n{REAL_EXPLANATION}", targets_table(real), ""]
    for series, quantity in SERIES.items():
        members = {n: result for n, result in small.items() if _series_name(n) == series}
        if members:
            figure_file = path_stem.with_name(f"{path_stem.name}-{series}.svg")
            text += [f"\n## Growth with {quantity}\n", results_table(members)]
            text += [f"\n![{quantity}]({figure_file.name})\n"]
            _plot_series(figure_file, members, quantity)
    path_stem.with_suffix(".md").write_text("\n".join(text))


def results_table(results: Results) -> str:
    """Render a row per workload and precision."""
    return _table(f"workload|precision|times as fast (95 %)|{MEASUREMENTS}", results, _row)


def targets_table(results: Results) -> str:
    """Render a row per workload with a real model and precision, with the targets."""
    header = "workload|precision|times as fast (95 %)|at least|peak of TRL's|at most|"
    return _table(header + MEASUREMENTS, results, _row_with_targets)


def _table(header: str, results: Results, row: Callable[[str, str, Result], list[str]]) -> str:
    numbers = header.count("|") - 1
    rows = [header.split("|"), ["---"] * 2 + ["---:"] * numbers]
    for name, by_precision in results.items():
        rows += [row(name, precision, result) for precision, result in by_precision.items()]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in rows)


def _row(name: str, precision: str, result: Result) -> list[str]:
    return [*_speedup_cells(name, precision, result), *_measurement_cells(result)]


def _row_with_targets(name: str, precision: str, result: Result) -> list[str]:
    peak_frac = result["ours"]["peak"] / result["peer"]["peak"]
    targets = [f"{SPEEDUP[name][precision]:g}", f"{peak_frac:.2f}", f"{PEAK_FRAC:g}"]
    return [*_speedup_cells(name, precision, result), *targets, *_measurement_cells(result)]


def _speedup_cells(name: str, precision: str, result: Result) -> list[str]:
    speedup = f"**{result['ratio']:.2f}** ({result['low']:.2f} to {result['high']:.2f})"
    return [f"{name}: {WORKLOADS[name].description}", precision, speedup]


def _measurement_cells(result: Result) -> list[str]:
    sides = result["ours"], result["peer"]
    cells = [f"{s[phase]:.2f}" for phase in ("seconds", "sample", "update") for s in sides]
    cells += [f"{s['tokens']:,.0f}" for s in sides]
    cells += [f"{s['peak'] / 1e9:.2f}" for s in sides]
    others = max(s["others"] for s in sides)
    return [*cells, f"{others:.2f}", str(result["pairs"])]


def _series_name(name: str) -> str:
    """Return the series that a workload belongs to, or an empty string."""
    prefix = name.partition("-")[0]
    return prefix if prefix in SERIES else ""


def _page_header(results: Results) -> str:
    result = next(iter(next(iter(results.values())).values()))
    versions = "; ".join(result[side]["versions"] for side in ("ours", "peer"))
    machine = f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores. {versions}."
    return f"# grupo and TRL on one machine\n\n{machine}\n\n{EXPLANATION}"


def cpu_name() -> str:
    """The processor's name."""
    match = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return match[1] if match else platform.processor()


def _plot_ratios(file: Path, results: Results) -> None:
    """Plot the ratios with their intervals as bars."""
    from matplotlib import pyplot

    bars: dict[str, Mapping[str, Any]] = {}
    for name, by_precision in reversed(results.items()):
        for precision, result in reversed(by_precision.items()):
            bars[f"{name}, {precision}"] = result
    figure, axes = pyplot.subplots(figsize=(7, 0.5 * len(bars) + 1), layout="constrained")
    ratios = [bar["ratio"] for bar in bars.values()]
    below = [bar["ratio"] - bar["low"] for bar in bars.values()]
    above = [bar["high"] - bar["ratio"] for bar in bars.values()]
    axes.barh(list(bars), ratios, xerr=[below, above], color="tab:blue")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as TRL")
    _save_figure(figure, file)


def _plot_series(file: Path, results: Results, quantity: str) -> None:
    """Plot the seconds and the memory of both libraries over a quantity."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    sizes = [int(re.sub(r"\D", "", name)) for name in results]
    points = [by_precision["float32"] for by_precision in results.values()]
    metrics = (("seconds", 1, "seconds per step"), ("peak", 1e9, "peak GB"))
    for axes, (metric, unit, label) in zip(panels, metrics, strict=True):
        for side, library in (("ours", "grupo"), ("peer", "TRL")):
            values = [point[side][metric] / unit for point in points]
            axes.plot(sizes, values, "o-", label=library)
        axes.set(xlabel=quantity, ylabel=label, ylim=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, sizes)
        axes.legend()
    _save_figure(figure, file)


def _save_figure(figure: Any, file: Path) -> None:
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "grupo"  # equal results give equal files
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
