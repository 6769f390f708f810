"""Results of runs as data: one line per run, appended, so that shares of the work add up."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grupo.evidence.claims.claim import Arm, Setting
from grupo.evidence.claims.digest import run_digest
from grupo.storage.strict_json import from_json

SIGNIFICANT_DIGITS = 5

RunMetrics = dict[str, float]
RunKey = tuple[str, str, int]  # name of the setting, label of the arm, seed


@dataclass
class Results:
    """The metrics of finished runs.

    Args:
        metrics: Metrics by run.
        digests: Digest of the code that made each run.
    """

    metrics: dict[RunKey, RunMetrics] = field(default_factory=dict)
    digests: dict[RunKey, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Results":
        """The results in a file; empty if there is none. Later lines replace earlier ones."""
        results = cls()
        for record in _records(path):
            key = record["setting"], record["arm"], record["seed"]
            results.metrics[key] = record["metrics"]
            results.digests[key] = record["digest"]
        return results

    def add(self, path: Path, setting: Setting, arm: Arm, seed: int, metrics: RunMetrics) -> None:
        """Add a run and append it to the file."""
        key = run_key(setting, arm, seed)
        self.digests[key] = run_digest(setting, arm)
        self.metrics[key] = {
            name: float(f"{value:.{SIGNIFICANT_DIGITS}g}") for name, value in metrics.items()
        }
        record = dict(zip(("setting", "arm", "seed"), key, strict=True))
        record |= {"digest": self.digests[key], "metrics": self.metrics[key]}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def is_current(self, setting: Setting, arm: Arm, seed: int) -> bool:
        """True if the run is there and was made by the code as it is now."""
        return self.digests.get(run_key(setting, arm, seed)) == run_digest(setting, arm)

    def values(self, setting: Setting, arm: Arm, metric: str) -> dict[int, float]:
        """The metric of an arm by seed; a run in which it could not be measured is left out."""
        wanted = (setting.name, arm.label)
        return {
            seed: metrics[metric]
            for (name, label, seed), metrics in self.metrics.items()
            if (name, label) == wanted and metric in metrics
        }


def run_key(setting: Setting, arm: Arm, seed: int) -> RunKey:
    """The key of a run."""
    return setting.name, arm.label, seed


def _records(path: Path) -> Iterator[dict]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield from_json(line)
