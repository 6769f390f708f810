"""Metrics of arms by seed in a file beside the page that has their table."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grupo.evidence.claims.paired_table import Runs
from grupo.evidence.claims.stored_runs import Metrics


def published_runs(
    file: Path, arms: Mapping[str, Callable[[int], Metrics]], seeds: Sequence[int]
) -> Runs:
    """Run each arm with each seed that the file lacks, append it, and return all metrics.

    Args:
        file: A JSON line for each arm and seed. Delete it after changes of an arm.
        arms: Functions by name that train with a seed and return metrics.
        seeds: The seeds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     file = Path(name) / "runs.jsonl"
    ...     first = published_runs(file, {"double": lambda seed: {"x": 2.0 * seed}}, [1, 3])
    ...     again = published_runs(file, {"double": lambda seed: {"x": 0.0}}, [3])
    >>> first, again
    ({'double': [{'x': 2.0}, {'x': 6.0}]}, {'double': [{'x': 6.0}]})
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines() if file.exists() else []
    known = {(line.pop("arm"), line.pop("seed")): line for line in map(json.loads, lines)}
    for seed in seeds:
        for name, run in arms.items():
            if (name, seed) not in known:
                known[name, seed] = {key: round(x, 6) for key, x in run(seed).items()}
                line = json.dumps({"arm": name, "seed": seed, **known[name, seed]})
                with file.open("a") as appended:
                    appended.write(line + "\n")
                print(line, file=sys.stderr, flush=True)
    return {name: [known[name, seed] for seed in seeds] for name in arms}
