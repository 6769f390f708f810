"""A whole run of a tiny model in a Gymnasium environment, from the command line."""

import pytest

pytest.importorskip("gymnasium", reason="Gymnasium is not installed: grupo[agents]")

from tests.helpers.env_runs import assert_resumes_exactly, make_model, recorded, train_by_command
from tests.helpers.gym_envs import COUNTER

OPTIONS = "max_turns=3, count=9, invalid_action=RepeatObservation(0.5), seed=1"


@pytest.mark.slow
def test_a_gymnasium_environment_trains_from_the_command_line_and_resumes_exactly(tmp_path):
    model = make_model(tmp_path / "model")
    options = ["--env", f"gymnasium:{COUNTER}({OPTIONS})", "--eval-tasks", "2"]
    run = train_by_command(tmp_path / "run", model, options)
    first, _ = recorded(run, "metrics")
    assert first["rollouts/failed"] == 0
    assert first["reward/invalid_actions"] > 0
    assert first["reward/env_reward"] == pytest.approx(first["reward/mean"])
    assert_resumes_exactly(run, tmp_path / "resumed")
