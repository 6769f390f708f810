"""Environments in actors of a local Ray cluster: runs are those of the environment itself."""

import os

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

from grupo.cli import main
from grupo.config.recipe_files import load_recipe_file, recipe_to_toml
from grupo.config.validate import check_recipe
from grupo.core.serialization import from_data, to_data
from grupo.envs import MultiTurn, RewardError, RewardTerm, SingleTurn, raise_error
from grupo.ray_workers import OnRay
from grupo.ray_workers.env_worker import EnvCallError
from grupo.recipe import Evaluation
from grupo.rewards import ChatEndpoint, Judge
from grupo.rewards.judges import NumberAfter
from grupo.rewards.judges.session import close_sessions
from grupo.training.callbacks import NullCallback
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from tests.helpers.fake_judge import FakeJudge, says
from tests.helpers.ray_envs import RaisingEnv, SlowReward, processes
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.scripted_play import play, sum_env
from tests.helpers.training_components import LetterGame, failing, save_models
from tests.helpers.training_recipes import base, recipe

CPUS = 0.5


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


class Interrupt(NullCallback):
    """Interrupts a run at the end of its third step."""

    def on_step_end(self, step, metrics):
        if step == 3:
            raise KeyboardInterrupt


def placed(env, **fields):
    return OnRay(env, workers=2, cpus=CPUS, **fields)


def assert_same_run_on_ray(training, folder):
    """A recipe has the same outcome with its environment on Ray, also after an interruption."""
    training_on_ray = training.replace(env=placed(training.env))
    run_training(training, folder / "local")
    run_training(training_on_ray, folder / "ray")
    with pytest.raises(KeyboardInterrupt):
        run_training(training_on_ray, folder / "resumed", Interrupt())
    resume_training(folder / "resumed")
    on_ray = outcome(folder / "ray")
    assert differences(outcome(folder / "local"), on_ray) == ["fingerprint"]  # of the recipe
    assert differences(on_ray, outcome(folder / "resumed")) == []


@pytest.mark.parametrize(
    "name",
    [
        *("grpo", "turns", "tools", "failing", "async"),
        *("tokens per step", "tokens per step turns"),
    ],
)
def test_runs_have_the_same_bits_as_without_ray_also_when_resumed(name, model, tmp_path):
    assert_same_run_on_ray(recipe(name, model), tmp_path)


def test_rollouts_of_a_game_equal_those_of_its_environment():
    answers = (["1", "2"], ["3"], ["x"], ["1", "1", "1", "1"])
    on_ray, local = play(placed(sum_env()), *answers), play(sum_env(), *answers)
    assert repr(on_ray) == repr(local)  # as text, because the reward of a failed rollout is NaN
    assert "invalid literal for int()" in on_ray[2].error


def test_errors_that_end_a_run_have_the_message_of_the_environment():
    env = SingleTurn((RewardTerm("part", failing),), on_failure=raise_error)
    with pytest.raises(RewardError) as local:
        play(env, ["cc"], ["a"])
    with pytest.raises(RewardError) as on_ray:
        play(placed(env), ["cc"], ["a"])
    assert str(on_ray.value) == str(local.value)


def test_an_unexpected_error_of_an_environment_is_raised_with_its_place():
    with pytest.raises(EnvCallError, match=r"ZeroDivisionError: no reply \(.*ray_envs.py:\d+\)"):
        play(placed(RaisingEnv()), ["a"])


def test_slow_rewards_run_in_several_actors(model, tmp_path):
    reward = RewardTerm("slow", SlowReward(str(tmp_path)))
    training = base(model).replace(
        env=placed(SingleTurn((reward,))), max_steps=1, eval_tasks=0, evaluation=Evaluation()
    )
    run_training(training, tmp_path / "run")
    assert len(processes(tmp_path)) == 2
    assert os.getpid() not in processes(tmp_path)


def test_a_judge_on_ray_scores_and_counts_as_in_this_process(model, tmp_path):
    fake = FakeJudge(says("Score: 3"))
    endpoint = ChatEndpoint("m", base_url=fake.url, api_key_env="", cache=str(tmp_path / "cache"))
    judge = Judge(endpoint, "Task {prompt}\nAnswer:{completion}", NumberAfter("Score:", 0, 6))
    env = SingleTurn((RewardTerm("quality", judge),))
    training = base(model).replace(
        env=placed(env), max_steps=1, eval_tasks=0, evaluation=Evaluation()
    )
    run_training(training, tmp_path / "run")
    close_sessions()
    fake.stop()
    (metrics,) = map(dict, outcome(tmp_path / "run")["metrics"])
    assert metrics["reward/quality"] == 0.5
    assert metrics["usage/judge_calls"] == len(fake.bodies) > 0


def test_a_recipe_on_ray_is_written_read_and_printed(model, tmp_path, capsys):
    training = base(model).replace(env=placed(MultiTurn(LetterGame), address="auto"))
    (tmp_path / "recipe.py").write_text(
        "from tests.helpers.training_recipes import base\n"
        "from tests.helpers.training_components import LetterGame\n"
        "from grupo.envs import MultiTurn\n"
        "from grupo.ray_workers import OnRay\n"
        f"RECIPE = base({model!r}).replace(env=OnRay(MultiTurn(LetterGame), 2, {CPUS}))\n"
    )
    assert from_data(to_data(training)) == training
    (tmp_path / "recipe.toml").write_text(recipe_to_toml(training))
    assert load_recipe_file(tmp_path / "recipe.toml") == training
    arguments = [str(tmp_path / "recipe.py"), "--env.workers", "1", "--steps", "1"]
    with pytest.raises(SystemExit) as end:
        main(["train", *arguments, "--dry-run"])
    assert not end.value.code
    out = capsys.readouterr().out
    assert "workers=1" in out or "workers = 1" in out, out


UNWRITABLE = SingleTurn((RewardTerm("part", lambda task, rollout: 0.0),))


def test_environments_that_actors_cannot_hold_are_refused():
    with pytest.raises(
        ConfigError, match=r"^env.rewards\[0\].fn.function: <lambda> has no address"
    ):
        check_recipe(base("model").replace(env=OnRay(UNWRITABLE)))
