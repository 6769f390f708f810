"""Environments of verifiers."""

import pytest

pytest.importorskip("verifiers", reason="verifiers is not installed: make test-adapters")

from grupo.envs import FallbackReward
from grupo.envs.verifiers import Verifiers, VerifiersTasks
from grupo.util.errors import ConfigError
from tests.helpers.env_runs import assert_resumes_exactly, make_model, recorded, train_by_command
from tests.helpers.scripted_play import play

ENV_ID = "tests.helpers.vf_envs"


def env_of(kind, time_limit=30.0, **fields):
    return Verifiers(ENV_ID, (("kind", kind),), time_limit=time_limit, **fields)


def first_task(env):
    return VerifiersTasks(env).load()[0]


def test_tasks_are_the_rows_of_the_data_set():
    tasks = VerifiersTasks(env_of("single")).load()
    assert len(tasks) == 6
    system, user = tasks[0].prompt
    assert (system["content"], user["content"], tasks[0].reference_answer) == (
        "Reverse!",
        "ab",
        "ba",
    )


def test_the_rubric_makes_the_reward_and_each_function_is_a_reward_term():
    env = env_of("single")
    right, wrong = play(env, ["ba"], ["abc"], task=first_task(env))
    assert (right.reward, wrong.reward) == (pytest.approx(1.2), pytest.approx(0.3))
    terms = right.reward_terms
    assert (terms["exact"], terms["length"], terms["relative"], terms["num_turns"]) == (
        1,
        2,
        0.5,
        1,
    )


def test_the_environment_answers_until_it_completes():
    env = env_of("guess")
    (rollout,) = play(env, ["x", "ba"], task=first_task(env))
    observations = [observation for observation, _ in rollout.turns]
    assert observations[1] == ({"role": "user", "content": "no 1"},)
    assert (len(observations), rollout.reward, rollout.reward_terms["done"]) == (2, 2.0, 1.0)


def test_rollouts_with_a_common_beginning_have_states_of_their_own():
    env = env_of("guess")
    first, second = play(env, ["x", "ba"], ["x", "y", "ba"], task=first_task(env))
    assert (first.reward, second.reward) == (2.0, 3.0)


def test_the_turn_limit_of_the_environment_ends_the_rollout():
    env = Verifiers(ENV_ID, (("kind", "guess"), ("max_turns", 2)))
    (rollout,) = play(env, ["x", "y", "z"], task=first_task(env))
    assert (len(rollout.turns), rollout.reward_terms["done"]) == (2, 1.0)


def test_tools_are_described_in_the_prompt_and_called_in_the_format_of_toolbox():
    env = env_of("tool")
    call = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
    (rollout,) = play(env, [call, "ba"], task=first_task(env))
    (system, _), (reply,) = (observation for observation, _ in rollout.turns)
    assert '"name": "add"' in system["content"]
    assert (reply["role"], reply["content"]) == ("tool", "5")
    assert (rollout.reward, rollout.reward_terms["add_calls"]) == (1.0, 1.0)


def test_an_environment_that_raises_or_hangs_fails_its_rollout_with_the_cause():
    env = env_of("guess", time_limit=0.5)
    good, bad, hanging = play(env, ["x", "ba"], ["raise"], ["hang"], task=first_task(env))
    assert (good.error, good.reward) == ("", 2.0)
    assert "raised RuntimeError: the game is broken (tests/helpers/vf_envs.py:" in bad.error
    assert bad.error.endswith(" at turn 1")
    assert "did not return within 0.5 s" in hanging.error


def test_a_reward_function_that_raises_fails_its_rollout_instead_of_scoring_0():
    env = env_of("broken", on_failure=FallbackReward(-1.0))
    good, bad = play(env, ["ba"], ["break"], task=first_task(env))
    assert (good.reward, bad.reward, bad.reward_terms["failed"]) == (1.0, -1.0, 1.0)
    (bad,) = play(env_of("broken"), ["break"], task=first_task(env))
    assert "the reward 'broken' raised RuntimeError: no dictionary" in bad.error


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Verifiers("no-such-env"), "no_such_env"),
        (Verifiers(ENV_ID, (("king", "single"),)), "unexpected keyword argument 'king'"),
    ],
)
def test_an_environment_that_cannot_be_loaded_is_refused(env, message):
    with pytest.raises(ConfigError, match=message):
        env.check()


def test_an_environment_trains_from_the_command_line_and_resumes_exactly(tmp_path):
    model = make_model(tmp_path / "model")
    options = ["--env", f"verifiers:{ENV_ID}(args=(('kind', 'guess'),), max_turns=2)"]
    run = train_by_command(tmp_path / "run", model, [*options, "--eval-tasks", "2"])
    first, _ = recorded(run, "metrics")
    assert (first["rollouts/failed"], first["reward/num_guesses"]) == (0, first["reward/mean"])
    assert_resumes_exactly(run, tmp_path / "resumed")
