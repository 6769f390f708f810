"""The quickstart learns with three seeds, and not with a negated advantage."""

from dataclasses import replace

import pytest

from grupo.algo.advantages import chain
from grupo.toy import ensure_trained
from grupo.toy.quickstart import RECIPE, TOY_MODEL
from grupo.training.start import run_training
from grupo.util.user_paths import models_dir


def negate(x, batch):
    """The negated advantage."""
    return -x


def quickstart(tmp_path, monkeypatch, seed, method=RECIPE.method):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    folder = ensure_trained(replace(TOY_MODEL, seed=seed))
    policy = replace(RECIPE.policy, model=str(folder))
    recipe = RECIPE.replace(policy=policy, method=method, seed=seed)
    return run_training(recipe, tmp_path / "run")["held_out"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sampled_accuracy_rises_by_thirty_points(tmp_path, monkeypatch, seed):
    scores = quickstart(tmp_path, monkeypatch, seed)
    assert scores["before"]["sampled"] >= 0.25
    assert scores["after"]["sampled"] - scores["before"]["sampled"] >= 0.30


@pytest.mark.slow
def test_a_negated_advantage_lowers_the_accuracy(tmp_path, monkeypatch):
    method = RECIPE.method.replace(advantage=chain(RECIPE.method.advantage, negate))
    scores = quickstart(tmp_path, monkeypatch, 0, method)
    assert scores["after"]["sampled"] < scores["before"]["sampled"]


def test_toy_models_are_cached_for_the_user_unless_a_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "named"))
    assert models_dir() == tmp_path / "named" / "models"
    monkeypatch.delenv("GRUPO_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert models_dir().is_absolute()
    assert not models_dir().is_relative_to(tmp_path / "named")
