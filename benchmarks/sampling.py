"""Compare sampling alone: grupo's engine, `generate` of transformers, and optionally vLLM.

    python -m benchmarks.sampling 3-128x32 --rounds 5 --vllm ENVIRONMENT

Without names, every workload with a small model is measured.

All engines get the same prompts and generate the same number of tokens, one after another; the
order rotates from round to round. "bound" is no engine: it computes products of large matrices,
with as many multiplications as the weights of the model need for the new tokens. For bfloat16
transformers and vLLM have bfloat16 weights; grupo has float32 weights and computes in bfloat16 by
autocast if the processor has instructions for it, otherwise in float32, and so does the bound.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.compare import HERE, RawDefaultsFormatter, Worker, WorkerDied
from benchmarks.summary import median_interval
from benchmarks.targets import SAMPLING
from benchmarks.workloads import REAL_SAMPLING, SAMPLING_WORKLOADS, SMALL_SAMPLING

Measurements = dict[str, Any]
Results = dict[str, dict[str, dict[str, Measurements]]]  # by workload, precision and engine
HEADER = "workload|precision|engine|tokens/s|grupo is times as fast (95 %)|peak GB|rounds"
REAL_SECTION = """## A real model

A Llama of the shape of SmolLM2-135M with random weights. In the rows of the bound the ratio is
the part of the bound that grupo reaches.
"""


def measure_workload(
    name: str, precision: str, rounds: int, pythons: dict[str, Path]
) -> Measurements:
    """Return the tokens/s of every engine, and the ratio of grupo's speed to it."""
    workers: dict[str, Worker] = {}
    try:
        for engine, python in pythons.items():
            workers[engine] = Worker("sampling_worker", python, engine, name, precision)
            for _ in range(2):  # warm up; vLLM needs both
                workers[engine].step()
        measurements = [_step_all(workers, number) for number in range(rounds)]
        return {
            engine: _summary(engine, measurements, workers[engine].startup) for engine in pythons
        }
    finally:
        for worker in workers.values():
            worker.close()


def _step_all(workers: dict[str, Worker], number: int) -> dict[str, Measurements]:
    order = list(workers)
    first = number % len(order)
    return {engine: workers[engine].step() for engine in order[first:] + order[:first]}


def _summary(
    engine: str, rounds: list[dict[str, Measurements]], startup: Measurements
) -> Measurements:
    steps = [by_engine[engine] for by_engine in rounds]
    grupo_steps = [by_engine["grupo"] for by_engine in rounds]
    counts = {step["tokens"] for step in steps + grupo_steps}
    assert len(counts) == 1, f"the engines generate different numbers of tokens: {counts}"
    pairs = zip(steps, grupo_steps, strict=True)
    ratios = [step["seconds"] / grupo_step["seconds"] for step, grupo_step in pairs]
    low, high = median_interval(ratios)
    return {
        "speed": median(step["tokens"] / step["seconds"] for step in steps),
        "peak": steps[-1]["peak"],
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "rounds": len(rounds),
        **startup["environment"],
    }


def render_page(results: Results) -> str:
    """Render a row per workload, precision and engine; real models have a table with targets."""
    explanation = (__doc__ or "").split("\n\n")[-1].strip()
    small = {name: results[name] for name in SMALL_SAMPLING if name in results}
    real = {name: results[name] for name in REAL_SAMPLING if name in results}
    sections = [f"# Sampling alone\n\n{explanation}\n"]
    if small:
        sections.append(f"{_table(HEADER, small, _row)}\n")
    if real:
        table = _table(f"{HEADER}|at least", real, _row_with_target)
        sections.append(f"{REAL_SECTION}\n{table}\n")
    return "\n".join(sections)


def _table(header: str, results: Results, row: Callable[..., str]) -> str:
    rows = [header, "|".join(["---"] * 3 + ["---:"] * (header.count("|") - 2))]
    for name, by_precision in results.items():
        for precision, by_engine in by_precision.items():
            rows += [row(name, precision, engine, result) for engine, result in by_engine.items()]
    return "\n".join(f"|{row}|" for row in rows)


def _row_with_target(name: str, precision: str, engine: str, result: Measurements) -> str:
    target = f"{SAMPLING[engine][precision]:g}" if engine in SAMPLING else ""
    return f"{_row(name, precision, engine, result)}|{target}"


def _row(name: str, precision: str, engine: str, result: Measurements) -> str:
    ratio = f"{result['ratio']:.2f} ({result['low']:.2f} to {result['high']:.2f})"
    cells = [
        SAMPLING_WORKLOADS[name].description,
        precision,
        f"{engine}: {result['versions']}",
        f"{result['speed']:,.0f}",
    ]
    return "|".join([*cells, ratio, f"{result['peak'] / 1e9:.2f}", str(result["rounds"])])


def save_result(file: Path, name: str, precision: str, result: Measurements) -> None:
    """Add a result to the JSON file and regenerate the page."""
    results = json.loads(file.read_text()) if file.is_file() else {}
    results.setdefault(name, {})[precision] = result
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    file.with_suffix(".md").write_text(render_page(results))


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
    own_python = Path(sys.executable)
    by_engine = {"grupo": own_python, "bound": own_python}
    by_engine |= {"dynamic": trl_python, "static": trl_python}
    if args.vllm:
        by_engine["vllm"] = args.vllm / "bin" / "python"
    names = args.names or list(SMALL_SAMPLING)
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    for name, precision in [(n, p) for n in names for p in SAMPLING_WORKLOADS[n].precisions]:
        if args.precision in (None, precision):
            try:
                save_result(
                    args.out,
                    name,
                    precision,
                    measure_workload(name, precision, args.rounds, by_engine),
                )
            except WorkerDied as death:
                print(f"{name}, {precision}: {death}", file=sys.stderr)
                died += 1
    return died


if __name__ == "__main__":
    sys.exit(main())
