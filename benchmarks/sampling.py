"""Sampling alone: grupo's engine, `generate` of transformers, and vLLM where it is installed.

    python -m benchmarks.sampling 3-128x32 --rounds 5 --vllm ENVIRONMENT

Everybody reads the same prompts and says equally many tokens, in turns; who goes first changes from
round to round. For bfloat16 the others hold bfloat16 weights; grupo holds float32 ones and computes
in bfloat16 by autocast where the processor has instructions for it, else in float32.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.compare import HERE, RawDefaultsFormatter, Worker, WorkerDied
from benchmarks.summary import median_interval
from benchmarks.workloads import SAMPLING_WORKLOADS

Measurements = dict[str, Any]


def measure_workload(
    name: str, precision: str, rounds: int, pythons: dict[str, Path]
) -> Measurements:
    """Tokens a second of every way, and how many times as fast grupo is."""
    workers: dict[str, Worker] = {}
    try:
        for way, python in pythons.items():
            workers[way] = Worker("speak", python, way, name, precision)
            for _ in range(2):  # warm up; vLLM needs both
                workers[way].step()
        said = [_step_all(workers, number) for number in range(rounds)]
        return {way: _summary(way, said, workers[way].startup) for way in pythons}
    finally:
        for worker in workers.values():
            worker.close()


def _step_all(workers: dict[str, Worker], number: int) -> dict[str, Measurements]:
    order = list(workers)
    first = number % len(order)
    return {way: workers[way].step() for way in order[first:] + order[:first]}


def _summary(
    way: str, rounds: list[dict[str, Measurements]], startup: Measurements
) -> Measurements:
    ratios = [said[way]["seconds"] / said["grupo"]["seconds"] for said in rounds]
    wanted = {said[name]["tokens"] for said in rounds for name in (way, "grupo")}
    assert len(wanted) == 1, f"the ways generate different numbers of tokens: {wanted}"
    speeds = [said[way]["tokens"] / said[way]["seconds"] for said in rounds]
    low, high = median_interval(ratios)
    ours = {"ratio": median(ratios), "low": low, "high": high, "rounds": len(rounds)}
    return {
        "speed": median(speeds),
        "peak": rounds[-1][way]["peak"],
        **ours,
        **startup["environment"],
    }


def render_page(results: dict[str, dict[str, Measurements]]) -> str:
    """A row for each way of each workload and precision."""
    words = (__doc__ or "").split("\n\n")[-1].strip()
    head = "workload|precision|way|tokens a second|grupo is times as fast (95 %)|peak GB|rounds"
    rows = [head, "---|---|---|---:|---:|---:|---:"]
    for name, by_precision in results.items():
        for precision, ways in by_precision.items():
            rows += [_row(name, precision, way, said) for way, said in ways.items()]
    table = "\n".join(f"|{row}|" for row in rows)
    return f"# Sampling alone\n\n{words}\n\n{table}\n"


def _row(name: str, precision: str, way: str, said: Measurements) -> str:
    ratio = f"{said['ratio']:.2f} ({said['low']:.2f} to {said['high']:.2f})"
    cells = [
        SAMPLING_WORKLOADS[name].description,
        precision,
        f"{way}: {said['versions']}",
        f"{said['speed']:,.0f}",
    ]
    return "|".join([*cells, ratio, f"{said['peak'] / 1e9:.2f}", str(said["rounds"])])


def save_result(file: Path, name: str, precision: str, result: Measurements) -> None:
    """Add a result to those that are there."""
    results = json.loads(file.read_text()) if file.is_file() else {}
    results.setdefault(name, {})[precision] = result
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    file.with_suffix(".md").write_text(
        render_page({n: results[n] for n in SAMPLING_WORKLOADS if n in results})
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawDefaultsFormatter)
    parser.add_argument(
        "names", nargs="*", choices=[*SAMPLING_WORKLOADS, []], default=[], metavar="NAME"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="only this one")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "sampling.json")
    parser.add_argument("--trl", type=Path, default=HERE / ".trl", help="TRL's environment")
    parser.add_argument("--vllm", type=Path, help="vLLM's environment; left out unless given")
    return parser.parse_args()


def main() -> int:
    """Measure what was asked for; how many workloads a worker died of."""
    args, died = arguments(), 0
    trl_python = args.trl / "bin" / "python"
    ways = {"grupo": Path(sys.executable), "dynamic": trl_python, "static": trl_python}
    if args.vllm:
        ways["vllm"] = args.vllm / "bin" / "python"
    names = args.names or list(SAMPLING_WORKLOADS)
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    for name, precision in [(n, p) for n in names for p in SAMPLING_WORKLOADS[n].precisions]:
        if args.precision in (None, precision):
            try:
                save_result(
                    args.out,
                    name,
                    precision,
                    measure_workload(name, precision, args.rounds, ways),
                )
            except WorkerDied as death:
                print(f"{name}, {precision}: {death}", file=sys.stderr)
                died += 1
    return died


if __name__ == "__main__":
    sys.exit(main())
