"""grupo and TRL in turns on this machine: the same model, prompts, lengths, precision, threads.

    python -m benchmarks.compare short long --pairs 10 --precision float32

A worker for each library loads the model and takes a step to warm up. Then they take turns, and
the order in a pair changes from pair to pair; pairs during which other programs worked are tried
again. Without names, every workload is measured. What was
measured is kept in a JSON file from run to run; a Markdown page and its pictures are made from it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.page import write
from benchmarks.processor import Clock
from benchmarks.summary import summary
from benchmarks.workloads import THREADS, WORKLOADS

HERE = Path(__file__).parent
Said = dict[str, Any]
Pair = tuple[Said, Said]
QUIET = 0.2  # cores that others may use


class Died(Exception):
    """A worker ended before it was to."""


class Worker:
    """A process that does one step whenever it is told to."""

    def __init__(self, module: str, python: Path, *asked: str) -> None:
        self.name = " ".join((module, *asked))
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` does it
        self.process = subprocess.Popen(
            [python, "-m", f"benchmarks.{module}", *asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=HERE.parent,
            env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
        )
        self.born = self.heard()

    def step(self) -> Said:
        """Let it do a step; its numbers."""
        assert self.process.stdin is not None
        before = Clock.of(self.process.pid)
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        said = self.heard()
        return said | {"others": Clock.of(self.process.pid).others(before)}

    def heard(self) -> Said:
        """Its next line; raises `Died` with the last lines of its errors if there is none."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.errors.seek(0)
        last = "".join(self.errors.readlines()[-12:])
        raise Died(f"{self.name} ended with {self.process.wait()}:\n{last}")

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self.errors.close()


def measured(name: str, precision: str, pairs: int, python: Path) -> Said:
    """The summary of so many pairs of steps."""
    workers: list[Worker] = []
    try:
        for module, binary in (("ours", Path(sys.executable)), ("peer", python)):
            workers.append(Worker(module, binary, name, precision))
            workers[-1].step()  # the first step warms up
        ours, peer = workers
        return summary(_undisturbed(ours, peer, pairs), ours.born, peer.born)
    finally:
        for worker in workers:
            worker.close()


def _undisturbed(ours: Worker, peer: Worker, wanted: int) -> list[Pair]:
    """So many pairs, those that others disturbed tried again twice at most; the least disturbed.

    Work of others does not slow both libraries alike: what it touched says little of either.
    """
    pairs: list[Pair] = []
    while sum(_disturbed(pair) < QUIET for pair in pairs) < wanted and len(pairs) < 3 * wanted:
        pairs.append(_pair(ours, peer, len(pairs)))
    return sorted(pairs, key=_disturbed)[:wanted]


def _disturbed(pair: Pair) -> float:
    return max(said["others"] for said in pair)


def _pair(ours: Worker, peer: Worker, number: int) -> Pair:
    """A step of each; who goes first alternates."""
    order = (ours, peer) if number % 2 == 0 else (peer, ours)
    said = {worker: worker.step() for worker in order}
    return said[ours], said[peer]


def keep(to: Path, name: str, precision: str, result: Said) -> None:
    """Add a result to those that are there."""
    file = to.with_suffix(".json")
    results = json.loads(file.read_text()) if file.is_file() else {}
    results.setdefault(name, {})[precision] = result
    order = [known for known in WORKLOADS if known in results]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({known: results[known] for known in order}, indent=1) + "\n")
    write(to)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=AsWritten)
    parser.add_argument("names", nargs="*", choices=[*WORKLOADS, []], default=[], metavar="NAME")
    parser.add_argument("--pairs", type=int, default=0, help="10, in bfloat16 3, unless told")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="only this one")
    parser.add_argument("--to", type=Path, default=HERE / "results" / "cpu")
    parser.add_argument("--trl", type=Path, default=HERE / ".trl", help="TRL's environment")
    return parser.parse_args()


class AsWritten(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of a description, and says defaults."""


def main() -> int:
    """Measure what was asked for; how many workloads a worker died of."""
    args, died = arguments(), 0
    names = args.names or list(WORKLOADS)
    subprocess.run([sys.executable, "-m", "benchmarks.models", *names], check=True, cwd=HERE.parent)
    for name, precision in [(n, p) for n in names for p in WORKLOADS[n].precisions]:
        if args.precision not in (None, precision):
            continue
        pairs = args.pairs or {"float32": 10, "bfloat16": 3}[precision]
        try:
            result = measured(name, precision, pairs, args.trl / "bin" / "python")
        except Died as death:
            print(f"{name}, {precision}: {death}", file=sys.stderr)
            died += 1
            continue
        keep(args.to, name, precision, result)
        print(f"{name}, {precision}: {result['ratio']:.2f} times as fast", flush=True)
    return died


if __name__ == "__main__":
    sys.exit(main())
