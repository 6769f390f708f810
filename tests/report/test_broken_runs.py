"""Small real runs with one planted defect each: the doctor reports it; healthy runs are clean."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grupo.recipe import Recipe
from grupo.report.checks import Finding
from grupo.report.doctor import examine
from grupo.training.start import run_training
from grupo.training.update import batch as batch_module
from tests.helpers import broken_folders
from tests.helpers.fast_cases import fast_cases
from tests.helpers.planted_defects import MASKS

Trained = Callable[[Recipe], list[Finding]]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return broken_folders.model(tmp_path_factory.mktemp("breaking"))


@pytest.fixture
def train_and_examine(tmp_path: Path) -> Trained:
    """Train a recipe and return the findings of the doctor."""

    def run(recipe: Recipe) -> list[Finding]:
        run_training(recipe, tmp_path / "run")
        return examine(tmp_path / "run")

    return run


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.mark.parametrize(
    "recipe", fast_cases(1, [broken_folders.healthy, broken_folders.adapted, broken_folders.longer])
)
def test_healthy_run_has_only_notes(recipe, model, train_and_examine):
    assert [f for f in train_and_examine(recipe(model)) if f.severity != "note"] == []


@pytest.mark.parametrize("defect", fast_cases(2, broken_folders.BROKEN))
def test_planted_defect_is_found(defect, model, train_and_examine):
    name, recipe, plant = broken_folders.BROKEN[defect]
    finding = by_name(train_and_examine(plant(recipe(model))))[name]
    assert finding.severity != "note"
    assert finding.causes
    assert finding.suggestions
    assert finding.locations


@pytest.mark.parametrize("mask", fast_cases(1, MASKS))
def test_wrong_mask_is_found(mask, model, train_and_examine, monkeypatch):
    monkeypatch.setattr(batch_module, "collate", MASKS[mask])
    finding = by_name(train_and_examine(broken_folders.healthy(model)))["wrong mask"]
    assert finding.severity == "error"
    assert finding.locations[0].step == 1
