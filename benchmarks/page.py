"""The page and the pictures of what was measured: python -m benchmarks.page RESULTS.json."""

import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.workloads import WORKLOADS

Results = Mapping[str, Mapping[str, Any]]
SERIES = {"group": "rollouts in a group", "prompt": "prompt tokens", "size": "million parameters"}

EXPLANATION = """`make bench` makes this page. Both libraries train the same model on the same
prompts with the same reward, in the same precision and with equally many threads, and take turns.
A step samples, scores and updates once: Adam, no KL, norm 1, temperature 1. `python -m
benchmarks.check` shows that both make the same gradient of the same tokens.

* "times as fast": the median over pairs of steps of TRL's seconds by grupo's, with a 95 % interval
  from a bootstrap over pairs. Seconds are medians; sampling includes judging.
* peak: the most memory the whole process ever held.
* others: how many cores other programs kept busy meanwhile. Pairs with more than 0.2 were tried
  again. A row with more is not to be trusted: both libraries suffer, but not alike.
* bfloat16: few pairs. A processor without such instructions imitates it slowly, and that is what
  TRL does there; grupo then computes in float32, and says so.
* TRL runs with its fastest settings, by `python -m benchmarks.tune`: no checkpointing, nothing
  logged or saved, the whole step as one micro-batch but in prompt-2048 and agent-apart. On a
  processor it evaluates its head at every token of the prompt too.
* short-signal: about 30 % of the groups have equal rewards, and so nothing to learn from.
* agent: eight turns, the world says 64 tokens before each. TRL plays them by its `rollout_func`,
  turn for turn with its own `generate`, and trains each rollout as one row, as grupo does.
* agent-apart: for TRL every turn is a task of its own, whose prompt is the context so far with
  random words in place of earlier answers: 16 prompts in groups of 8 where grupo has 2 groups
  of 8 rollouts of 8 turns. Equally many tokens are sampled, and 8 times as many rows trained.
"""


def write_page(path_stem: Path) -> None:
    """Make the page and its pictures from `to`.json."""
    results: Results = json.loads(path_stem.with_suffix(".json").read_text())
    named = {name: result for name, result in results.items() if not _series_name(name)}
    text = [_page_header(results), results_table(named)]
    for name, what in SERIES.items():
        members = {n: r for n, r in results.items() if _series_name(n) == name}
        if members:
            text += [f"\n## What grows with {what}\n", results_table(members)]
            text += [f"\n![{what}]({path_stem.name}-{name}.svg)\n"]
            _plot_series(path_stem.with_name(f"{path_stem.name}-{name}.svg"), members, what)
    if named:
        text.insert(2, f"\n![Times as fast]({path_stem.name}.svg)\n")
        _plot_ratios(path_stem.with_suffix(".svg"), named)
    path_stem.with_suffix(".md").write_text("\n".join(text))


def results_table(results: Results) -> str:
    """A row for each workload and precision."""
    head = "workload|precision|times as fast (95 %)|seconds: grupo|TRL|sampling: grupo|TRL|"
    head += "update: grupo|TRL|tokens: grupo|TRL|peak GB: grupo|TRL|others|pairs"
    rows = [head, "|".join(["---"] * 2 + ["---:"] * 13)]
    for name, by_precision in results.items():
        rows += [_row(name, precision, result) for precision, result in by_precision.items()]
    return "\n".join(f"|{row}|" for row in rows)


def _row(name: str, precision: str, result: Mapping[str, Any]) -> str:
    sides = result["ours"], result["peer"]
    cells = [f"{name}: {WORKLOADS[name].description}", precision]
    cells += [f"**{result['ratio']:.2f}** ({result['low']:.2f} to {result['high']:.2f})"]
    cells += [f"{s[part]:.2f}" for part in ("seconds", "sample", "update") for s in sides]
    cells += [f"{s['tokens']:,.0f}" for s in sides]
    cells += [f"{s['peak'] / 1e9:.2f}" for s in sides]
    others = max(s["others"] for s in sides)
    return "|".join([*cells, f"{others:.2f}", str(result["pairs"])])


def _series_name(name: str) -> str:
    """Which of the series a workload is of, if any."""
    head = name.partition("-")[0]
    return head if head in SERIES else ""


def _page_header(results: Results) -> str:
    one = next(iter(next(iter(results.values())).values()))
    versions = "; ".join(one[side]["versions"] for side in ("ours", "peer"))
    machine = f"{_cpu_name()}, {len(os.sched_getaffinity(0))} cores. {versions}."
    return f"# grupo and TRL on one machine\n\n{machine}\n\n{EXPLANATION}"


def _cpu_name() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor()


def _plot_ratios(file: Path, results: Results) -> None:
    """Times as fast, with intervals."""
    from matplotlib import pyplot

    rows = [(f"{n}, {p}", r) for n, by in results.items() for p, r in by.items()][::-1]
    figure, axes = pyplot.subplots(figsize=(7, 0.5 * len(rows) + 1), layout="constrained")
    ratios = [r["ratio"] for _, r in rows]
    reach = [[r["ratio"] - r["low"] for _, r in rows], [r["high"] - r["ratio"] for _, r in rows]]
    axes.barh([label for label, _ in rows], ratios, xerr=reach, color="tab:blue")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as TRL")
    _save_figure(figure, file)


def _plot_series(file: Path, results: Results, what: str) -> None:
    """Seconds and memory of both libraries."""
    from matplotlib import pyplot

    figure, both = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    at = [int(re.sub(r"\D", "", name)) for name in results]
    shown = [by["float32"] for by in results.values()]
    for axes, part, unit in zip(both, ("seconds", "peak"), (1, 1e9), strict=True):
        for side, label in (("ours", "grupo"), ("peer", "TRL")):
            axes.plot(at, [r[side][part] / unit for r in shown], "o-", label=label)
        axes.set(xlabel=what, ylabel=f"{part}{' GB' if part == 'peak' else ' a step'}", ylim=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, at)
        axes.legend()
    _save_figure(figure, file)


def _save_figure(figure: Any, file: Path) -> None:
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "grupo"  # the same numbers make the same file
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    write_page(Path(sys.argv[1]))
