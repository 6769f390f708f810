"""A whole run of a tiny model in an environment of OpenEnv, from the command line."""

import pytest

pytest.importorskip("openenv", reason="OpenEnv is not installed: make test-adapters")

from tests.helpers.env_runs import assert_resumes_exactly, make_model, recorded, train_by_command
from tests.helpers.openenv_server import Echo, EchoAction, EchoObservation, served


def test_an_environment_of_openenv_trains_from_the_command_line_and_resumes_exactly(tmp_path):
    model = make_model(tmp_path / "model")
    with served(Echo, EchoAction, EchoObservation) as (url, _):
        options = ["--env", f"openenv:{url}(max_turns=2, count=9)", "--eval-tasks", "2"]
        run = train_by_command(tmp_path / "run", model, options)
        first, _ = recorded(run, "metrics")
        assert first["rollouts/failed"] == 0
        assert first["reward/env_reward"] == pytest.approx(first["reward/mean"])
        assert first["reward/turns"] == 2.0
        assert_resumes_exactly(run, tmp_path / "resumed")
