"""Small real runs, broken on purpose: each is found by name, and the same run unbroken is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grupo.recipe import Recipe
from grupo.report.checks import Finding
from grupo.report.doctor import examine
from grupo.training import learner
from grupo.training.trainer import train
from tests.helpers import broken_folders
from tests.helpers.planted_defects import MASKS

Trained = Callable[[Recipe], list[Finding]]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return broken_folders.model(tmp_path_factory.mktemp("breaking"))


@pytest.fixture
def found(tmp_path: Path) -> Trained:
    """Train, and say what the doctor found."""

    def examined(recipe: Recipe) -> list[Finding]:
        train(recipe, tmp_path / "run")
        return examine(tmp_path / "run")

    return examined


def named(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.mark.parametrize(
    "recipe", [broken_folders.healthy, broken_folders.adapted, broken_folders.longer]
)
def test_a_healthy_run_has_nothing_wrong(recipe, model, found):
    assert [f for f in found(recipe(model)) if f.severity != "note"] == []


@pytest.mark.parametrize("way", broken_folders.BROKEN)
def test_a_run_that_was_broken_is_found_by_name(way, model, found):
    name, recipe, broken = broken_folders.BROKEN[way]
    finding = named(found(broken(recipe(model))))[name]
    assert finding.severity != "note"
    assert finding.causes
    assert finding.suggestions
    assert finding.locations


@pytest.mark.parametrize("mask", MASKS)
def test_a_wrong_mask_is_found(mask, model, found, monkeypatch):
    monkeypatch.setattr(learner, "collate", MASKS[mask])
    finding = named(found(broken_folders.healthy(model)))["wrong mask"]
    assert finding.severity == "error"
    assert finding.locations[0].step == 0
