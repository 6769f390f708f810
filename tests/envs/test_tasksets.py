"""Tasksets of verifiers 0.4, played by harnesses."""

import pytest

pytest.importorskip(
    "verifiers", minversion="0.4", reason="verifiers 0.4 is not installed: make test-adapters"
)
pytest.importorskip("reverse_words", reason="tests/helpers/tasksets is not installed")

from grupo.envs import FallbackReward
from grupo.envs.proxy import ProxyEnv
from grupo.envs.tasksets import TasksetAgent, TasksetTasks
from grupo.util.errors import ConfigError
from tests.helpers.env_runs import assert_resumes_exactly, make_model, recorded, train_by_command
from tests.helpers.scripted_play import play

REVERSE = TasksetAgent("reverse-words")
SPELLING = TasksetAgent("word-tools")
CALL = '<tool_call>{"name": "speller_spell", "arguments": {"word": "ab"}}</tool_call>'


def first_task(agent):
    return TasksetTasks(agent).load()[0]


def test_the_tasks_are_those_of_an_installed_taskset_by_its_name():
    tasks = TasksetTasks(REVERSE).load()
    assert len(tasks) == 6
    system, user = tasks[0].prompt
    assert (system["content"], user["content"]) == ("Reverse!", "ab")
    assert tasks[0].reference_answer == "ba"


def test_arguments_are_fields_of_the_configuration_of_the_taskset():
    agent = TasksetAgent("reverse-words", args=(("num_words", 3), ("system", "Back!")))
    tasks = TasksetTasks(agent).load()
    assert (len(tasks), tasks[0].prompt[0]["content"]) == (3, "Back!")
    assert len(TasksetTasks(agent, limit=2).load()) == 2


def test_weighted_rewards_make_the_reward_and_metrics_are_reward_terms():
    env = ProxyEnv(REVERSE)
    right, wrong = play(env, ["ba"], ["abc"], task=first_task(REVERSE))
    assert (right.reward, wrong.reward) == (pytest.approx(1.2), pytest.approx(0.3))
    terms = right.reward_terms
    assert terms["agent_reward/exact"] == 1.0
    assert terms["agent_reward/length"] == pytest.approx(0.2)
    assert terms["agent_reward/metrics/answers"] == 1.0


def test_the_harness_sends_the_prompt_of_the_task():
    (rollout,) = play(ProxyEnv(REVERSE), ["ba"], task=first_task(REVERSE))
    ((observation, _),) = rollout.turns
    assert [(m["role"], m["content"]) for m in observation] == [
        ("system", "Reverse!"),
        ("user", "ab"),
    ]


def test_the_policy_calls_the_tools_of_the_taskset():
    (rollout,) = play(ProxyEnv(SPELLING), [CALL, "b-a"], task=first_task(SPELLING))
    first, second = (observation for observation, _ in rollout.turns)
    assert "Spell a word." in str(first)
    assert "a-b" in str(second)
    assert (rollout.reward, rollout.reward_terms["tool_calls"]) == (1.0, 1.0)


def test_verifiers_ends_and_scores_an_episode_at_the_turn_limit():
    agent = TasksetAgent("word-tools", max_turns=1)
    (rollout,) = play(ProxyEnv(agent), [CALL, "never generated"], task=first_task(agent))
    assert (len(rollout.turns), rollout.reward, rollout.error) == (1, 0.0, "")
    assert rollout.reward_terms["call_limit"] == 0.0


def test_a_reward_that_raises_fails_its_rollout():
    env = ProxyEnv(REVERSE, on_failure=FallbackReward(-1.0))
    good, bad = play(env, ["ba"], ["raise"], task=first_task(REVERSE))
    assert (good.reward, bad.reward) == (pytest.approx(1.2), -1.0)
    (dropped,) = play(ProxyEnv(REVERSE), ["raise"], task=first_task(REVERSE))
    assert "TaskError: task ReverseTask scoring: RuntimeError: no dictionary" in dropped.error


def test_a_reward_that_hangs_fails_its_rollout():
    (hanging,) = play(ProxyEnv(REVERSE, time_limit=8.0), ["hang"], task=first_task(REVERSE))
    assert "neither called the policy nor ended within 8 s" in hanging.error


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (TasksetAgent("no-such-taskset"), "no_such_taskset"),
        (TasksetAgent("reverse-words", args=(("num_word", 3),)), "Did you mean 'num_words'"),
        (TasksetAgent("reverse-words", args=(("num_words", "x"),)), "num_words"),
        (TasksetAgent("reverse-words", harness="nul"), "built-in harnesses are: .* null"),
        (TasksetAgent("reverse-words", harness_args=(("tool_time", 3),)), "'tool_timeout'"),
        (TasksetAgent("two-players"), "2 agents: solver, judge. Allowed: .* one agent"),
    ],
)
def test_a_taskset_that_cannot_be_played_is_refused(agent, message):
    with pytest.raises(ConfigError, match=message):
        agent.check()


def test_a_taskset_without_end_needs_a_limit():
    agent = TasksetAgent("endless-words")
    with pytest.raises(ConfigError, match="limit: 0, and 'endless-words' has no end"):
        TasksetTasks(agent).load()
    assert len(TasksetTasks(agent, limit=7).load()) == 7


def test_a_harness_that_executes_code_runs_in_a_container_by_default():
    config = TasksetAgent("reverse-words", harness="bash")._episode_config()
    assert config.agent.runtime.type == "docker"
    assert REVERSE._episode_config().agent.runtime.type == "subprocess"


def test_a_taskset_trains_from_the_command_line_and_resumes_exactly(tmp_path):
    model = make_model(tmp_path / "model")
    # each rollout starts a program: a machine with other work may need a minute for those of a step
    options = ["--env", "taskset:reverse-words(limit=4, time_limit=600)", "--eval-tasks", "2"]
    run = train_by_command(tmp_path / "run", model, options)
    first, _ = recorded(run, "metrics")
    assert first["rollouts/failed"] == 0
    assert first["reward/agent_reward/metrics/answers"] == 1.0
    assert_resumes_exactly(run, tmp_path / "resumed")
