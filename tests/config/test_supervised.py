"""Supervised recipes: epochs, limits of length, evaluation without a reward."""

import re

import pytest

from grupo.config.epochs import steps_of_epochs, with_epochs
from grupo.config.supervised import answers_of, check_prompts, check_supervised, length_limit
from grupo.core.demonstration import Demonstration
from grupo.core.types import Response, Rollout, Task
from grupo.core.validation import PromptLimit
from grupo.envs import RewardTerm, SingleTurn, Unscored
from grupo.method import Method
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import ExactMatch
from grupo.tasks.overlong import drop, error, fit_prompts, truncate
from grupo.util.errors import ConfigError

ROWS = [{"prompt": f"{i:02}", "completion": "b"} for i in range(20)]


def recipe(**changes):
    base = Recipe(
        policy=CausalLM("model"),
        env=Unscored(),
        tasks=ROWS,
        eval_tasks=2,
        method=sft(),
        evaluation=Evaluation(attempts=0),
        prompts_per_step=4,
    )
    return base.replace(**changes)


@pytest.mark.parametrize(
    ("epochs", "num_tasks", "prompts", "steps"),
    [(1, 18, 4, 5), (2, 18, 4, 9), (0.5, 18, 3, 3), (3, 16, 16, 3), (0.1, 30, 3, 1)],
)
def test_steps_draw_every_task_as_often_as_there_are_epochs(epochs, num_tasks, prompts, steps):
    assert steps_of_epochs(epochs, num_tasks, prompts) == steps


def test_epochs_count_training_tasks_alone():
    assert with_epochs(recipe(), 2).max_steps == 9  # 18 of 20 rows, twice, in steps of 4


@pytest.mark.parametrize("epochs", [0.0, -1.0, float("nan"), float("inf")])
def test_other_epochs_are_refused(epochs):
    with pytest.raises(ConfigError, match=r"epochs: .* Allowed: above 0"):
        steps_of_epochs(epochs, 10, 2)


def test_reward_is_needed_for_sampling_and_for_methods_that_generate():
    check_supervised(recipe())
    with pytest.raises(ConfigError, match=r"evaluation.attempts: 3. Allowed without a reward: 0"):
        check_supervised(recipe(evaluation=Evaluation(attempts=3)))
    with pytest.raises(ConfigError, match=re.escape("env: Unscored(), which has no reward")):
        check_supervised(recipe(method=Method(), evaluation=Evaluation(attempts=3)))
    env = SingleTurn((RewardTerm("same", ExactMatch()),))
    check_supervised(recipe(env=env, evaluation=Evaluation(attempts=3)))
    with pytest.raises(ConfigError, match=r"evaluation.attempts: 0. Allowed: 1 or more"):
        check_supervised(recipe(env=env, method=Method()))


def test_text_without_a_prompt_is_refused_by_methods_that_generate():
    tasks = [Task("k", "", columns={"text": "a"}, location="rows.jsonl, line 1")]
    check_prompts(recipe(), tasks)
    with pytest.raises(ConfigError, match=r"rows.jsonl, line 1 has no column 'prompt'"):
        check_prompts(recipe(method=Method()), tasks)
    with pytest.raises(ConfigError, match=r"has no column 'prompt'"):
        check_prompts(recipe(evaluation=Evaluation(attempts=2)), tasks)


def characters(rollout: Rollout, observation) -> tuple[int, ...]:
    return tuple(map(ord, observation))


def demonstrate(demonstration: Demonstration) -> Rollout:
    ((observation, answer),) = demonstration.turns
    items = characters(Rollout(), answer)
    response = Response(items, (0.0,) * len(items), characters(Rollout(), observation))
    return Rollout().append_turn(observation, response)


LIMIT = length_limit(sft(), PromptLimit(characters, 200, 150, demonstrate))


def task(prompt, completion):
    return Task(prompt, prompt, columns={"completion": completion}, location=f"line {prompt[:1]}")


def test_prompt_and_answers_share_the_context():
    fitting, long = task("a" * 100, "b" * 100), task("c" * 101, "b" * 100)
    assert (LIMIT.describe_excess(fitting), LIMIT.describe_excess(long)) == ("", "201 tokens")
    assert LIMIT.surely_fits(task("a", "b"))
    assert not LIMIT.surely_fits(long)
    expected = "tasks: 1 of 2 demonstrations are longer than the context: line c (201 tokens)."
    with pytest.raises(ConfigError, match=re.escape(expected)):
        fit_prompts(error, LIMIT, [fitting, long])
    (kept,), note = fit_prompts(drop, LIMIT, [fitting, long])
    assert ([t.prompt[:1] for t in kept], note[:7]) == (["a"], "Dropped")


def test_truncation_shortens_the_prompt_and_never_the_answer():
    (tasks,), _ = fit_prompts(truncate, LIMIT, [task("a" * 150 + "z" * 50, "b" * 120)])
    assert tasks[0].prompt == "a" * 30 + "z" * 50
    with pytest.raises(ConfigError, match=r"--overlong drop"):
        fit_prompts(truncate, LIMIT, [task("a" * 10, "b" * 200)])


def test_row_without_a_demonstration_is_found_wherever_it_is():
    tasks = [Task("k", "a", location="rows.jsonl, line 5000")]
    with pytest.raises(ConfigError, match=r"rows.jsonl, line 5000, 'a', has no demonstration"):
        fit_prompts(error, LIMIT, tasks)


def test_other_methods_keep_the_limit_of_prompts():
    limit = PromptLimit(characters, 200, 150)
    assert length_limit(Method(), limit) is limit
    assert length_limit(sft(), None) is None


def test_length_of_answers_is_that_of_demonstrations():
    chat = [{"role": "user", "content": "abc"}, {"role": "assistant", "content": "de"}] * 2
    tasks = Task("k", tuple(chat[:1]), "reference", columns={"messages": chat})
    assert answers_of(sft())(tasks) == "deabcde"
    assert answers_of(Method())(tasks) == "reference"
