"""docs/metrics.md documents exactly the metrics that runs log."""

import json
import re
from pathlib import Path

import pytest

from grupo.catalogue.entries import methods
from grupo.testing import property_helpers
from grupo.training.update.metrics import advantage_metrics
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "metrics.md"
ROW = re.compile(r"^\| `([^`]+)`( †)? \|", re.MULTILINE)


def documented() -> dict[str, bool]:
    """Every name on the page, and whether it is logged only under a condition (†)."""
    return {name: bool(dagger) for name, dagger in ROW.findall(PAGE.read_text())}


def matches(name: str, row: str) -> bool:
    return re.fullmatch(re.sub("<[a-z]+>", ".+", row), name) is not None


def logged(run: Path) -> set[str]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return {name for line in lines for name in line}


def test_every_logged_metric_is_documented(real_run):
    names, rows = logged(real_run), documented()
    assert {"step", "reward/mean", "policy/kl_ref"} <= names
    assert [n for n in names if not any(matches(n, row) for row in rows)] == []


def test_every_unconditional_metric_is_logged(real_run):
    always = {row for row, conditional in documented().items() if not conditional}
    assert len(always) > 20
    assert always - logged(real_run) == set()


def test_every_row_fills_its_columns():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert all(len(line.split("|")) == 7 and "|  |" not in line for line in rows)


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_metrics_of_every_method_are_documented(entry):
    method = property_helpers.resolved_at_midpoint(entry.method)
    batch = property_helpers.batch_for(method).with_advantage(method.advantage)
    names = {
        *method.loss.metrics(property_helpers.policy_signals(method, batch), batch),
        *advantage_metrics(method, batch),
    }
    assert [n for n in sorted(names) if not any(matches(n, row) for row in documented())] == []
