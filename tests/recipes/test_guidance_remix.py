"""The tables of ReMix and VSPO: arms that differ in one thing, and rollouts until an accuracy."""

import pytest

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core.reference_update import ReferenceUpdate
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

REMIX = load_module_file(ROOT / "recipes" / "guidance" / "remix.py")
VSPO = load_module_file(ROOT / "recipes" / "guidance" / "prs_vspo.py")


def curve(accuracies: list[float], rollouts_each: int) -> dict[str, float]:
    """A run with a measurement after every `rollouts_each` rollouts."""
    run = {"length": 30.0}
    for i, accuracy in enumerate(accuracies, 1):
        run[f"accuracy/{i}"] = accuracy
        run[f"rollouts/{i}"] = float(i * rollouts_each)
    return run


def test_rollouts_until_the_accuracy_of_grpo_are_counted_on_means_of_three():
    grpo = curve([0.0, 0.3, 0.6, 0.9], 100)  # means of three: 0, 0.15, 0.3, 0.6
    fast = curve([0.0, 0.6, 0.9, 0.9], 60)  # 0, 0.3, 0.5, 0.8
    metrics = REMIX.compared(fast, grpo)
    assert metrics["rollouts"] == 240.0  # the fourth mean is the first above 0.6
    assert metrics["ratio"] == pytest.approx(0.6)  # GRPO needs 400
    assert metrics["end"] == pytest.approx(0.8)
    assert REMIX.compared(grpo, grpo)["ratio"] == 1.0


def test_an_accuracy_that_is_not_reached_costs_all_rollouts_of_grpo():
    metrics = REMIX.compared(curve([0.0, 0.1, 0.1, 0.1], 60), curve([0.0, 0.3, 0.6, 0.9], 100))
    assert (metrics["rollouts"], metrics["ratio"], metrics["reached"]) == (400.0, 1.0, 0.0)


def test_without_reincarnation_all_steps_are_mixed():
    always, remix = REMIX.METHODS["no reincarnation"], REMIX.METHODS["ReMix"]
    assert always.replay.old_share.steps == REMIX.STEPS
    assert remix.replay.old_share.steps == REMIX.MIXED_STEPS < REMIX.STEPS
    assert remix.reference == ReferenceUpdate(1.0, every=REMIX.MIXED_STEPS, until=REMIX.MIXED_STEPS)
    assert always.loss == remix.loss


def test_vspo_without_damping_differs_in_the_advantage_only():
    damped, undamped = VSPO.METHODS["VSPO"], VSPO.METHODS["without damping"]
    assert undamped.advantage == chain(Center(), ScaleByStd())
    assert undamped.replace(advantage=damped.advantage) == damped


def test_the_table_of_stored_runs_ends_with_the_named_comparison(tmp_path, capsys):
    metrics = {"accuracy/2": 0.5, "rollouts/2": 160.0, "length": 30.0}
    arms = dict.fromkeys(REMIX.METHODS, lambda seed: metrics)
    stored_runs(tmp_path / "runs.jsonl", arms, (0, 1))
    REMIX.main(tmp_path, (0, 1))
    assert "ratio - 0.6: +0.4 [+0.4, +0.4]" in capsys.readouterr().out
