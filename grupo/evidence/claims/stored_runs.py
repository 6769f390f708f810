"""Metrics of arms by seed, kept in a file, so that an interrupted script goes on."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grupo.evidence.claims.paired_table import Runs

Metrics = Mapping[str, float]


def stored_runs(
    file: Path, arms: Mapping[str, Callable[[int], Metrics]], seeds: Sequence[int]
) -> Runs:
    """Run each arm with each seed that the file lacks, append the runs, and return all metrics.

    Two processes may share the file if they have other seeds.

    Args:
        file: A JSON line for each arm and seed. Delete it after changes of an arm.
        arms: Functions by name that train with a seed and return metrics.
        seeds: The seeds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     file = Path(name) / "runs.jsonl"
    ...     first = stored_runs(file, {"double": lambda seed: {"x": 2.0 * seed}}, [1, 3])
    ...     again = stored_runs(file, {"double": lambda seed: {"x": 0.0}}, [3])
    >>> first, again
    ({'double': [{'x': 2.0}, {'x': 6.0}]}, {'double': [{'x': 6.0}]})
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    known = {(line.pop("arm"), line.pop("seed")): line for line in map(json.loads, lines)}
    for seed in seeds:
        for name, run in arms.items():
            if (name, seed) not in known:
                known[name, seed] = dict(run(seed))
                line = json.dumps({"arm": name, "seed": seed, **known[name, seed]})
                with file.open("a", encoding="utf-8") as appended:
                    appended.write(line + "\n")
                print(line, file=sys.stderr, flush=True)
    return {name: [known[name, seed] for seed in seeds] for name in arms}
