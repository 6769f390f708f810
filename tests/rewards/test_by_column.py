"""Rewards by the value of a task's column."""

import asyncio
import time

import pytest

from grupo.config.recipe_files import load_recipe_file, recipe_to_toml
from grupo.config.validate import check_component_tasks
from grupo.config.validate_rewards import declared_reward_range
from grupo.core.component import to_code
from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import (
    ByColumn,
    ExactMatch,
    FunctionReward,
    LengthPenalty,
    ReasoningGymVerifier,
    Route,
    SelfTimedReward,
)
from grupo.rewards.majority_vote import MajorityVote
from grupo.tasks import ReasoningGym
from grupo.util.errors import ConfigError

ROUTES = (Route("sums", ExactMatch()), Route("prose", LengthPenalty(2, penalty_coef=0.5)))


def rollout(text, tokens=1):
    return Rollout((("?", Response((1,) * tokens, (0.0,) * tokens, text=text)),))


def task(domain, reference_answer="4"):
    return Task("k", "?", reference_answer, columns={"domain": domain}, location="t.jsonl, line 3")


def results(reward, scored_task, *rollouts, time_limit=10.0):
    env = SingleTurn((RewardTerm("correct", reward),), time_limit=time_limit)
    return asyncio.run(env.score(scored_task, list(rollouts)))


def test_each_task_has_the_reward_of_its_value_and_a_term_named_by_it():
    reward = ByColumn("domain", ROUTES)
    right, wrong = results(reward, task("sums"), rollout("4"), rollout("5"))
    assert right.reward_terms == {"correct": 1.0, "correct/sums": 1.0}
    assert wrong.reward_terms == {"correct": 0.0, "correct/sums": 0.0}
    (long,) = results(reward, task("prose"), rollout("a", tokens=5))
    assert long.reward_terms == {"correct": -1.5, "correct/prose": -1.5}


def test_a_value_without_a_reward_names_the_row_and_the_nearest_value():
    with pytest.raises(ConfigError) as error:
        ByColumn("domain", ROUTES).validate_tasks([task("sums"), task("sum")])
    assert str(error.value) == (
        "tasks: t.jsonl, line 3 has 'sum' in the column 'domain', which no reward takes."
        " Did you mean 'sums'? Allowed: prose, sums."
    )


def test_a_missing_column_names_the_row_and_the_nearest_column():
    with pytest.raises(ConfigError, match=r"line 3 has no column 'domains'.*mean 'domain'"):
        ByColumn("domains", ROUTES).validate_tasks([task("sums")])


def test_a_value_that_was_not_checked_fails_its_rollouts_only():
    (result,) = results(ByColumn("domain", ROUTES), task("sum"), rollout("4"))
    assert "which no reward takes" in result.error
    assert result.reward_terms == {}


def test_values_of_numbers_and_the_source_choose_routes():
    by_level = ByColumn("domain", (Route("3", ExactMatch()),))
    assert results(by_level, task(3), rollout("4"))[0].reward == 1.0
    by_source = ByColumn("source", (Route("gsm8k", ExactMatch()),))
    assert by_source(Task("k", "?", "4", source="gsm8k"), [rollout("4")]) == [1.0]


def test_rewards_that_compare_rollouts_async_ones_and_judges_are_routed():
    async def async_length(task, rollout):
        await asyncio.sleep(0)
        return len(rollout.text)

    class Late(SelfTimedReward):
        async def __call__(self, task, rollouts):
            await asyncio.sleep(0.2)
            return [0.25 for _ in rollouts]

    reward = ByColumn(
        "domain",
        (
            Route("vote", MajorityVote(str.strip)),
            Route("async", FunctionReward(async_length)),
            Route("judge", Late(), time_limit=0.01),
        ),
    )
    texts = [rollout("a"), rollout("a"), rollout("bcd")]
    assert [r.reward for r in results(reward, task("vote"), *texts)] == [1.0, 1.0, 0.0]
    assert [r.reward for r in results(reward, task("async"), *texts)] == [1.0, 1.0, 3.0]
    assert [r.reward for r in results(reward, task("judge"), *texts)] == [0.25, 0.25, 0.25]


def test_a_route_has_its_own_time_limit():
    def slow(task, rollout):
        if rollout.text:
            time.sleep(0.3)
        return 1.0

    routes = (Route("sums", slow, time_limit=0.05), Route("prose", slow, time_limit=5.0))
    reward = ByColumn("domain", routes)
    (late,) = results(reward, task("sums", ""), rollout("4"))
    assert late.reward_terms == {"correct": 0.0, "correct/sums": 0.0, "answer_error": 1.0}
    (in_time,) = results(reward, task("prose", ""), rollout("4"), time_limit=0.05)
    assert in_time.reward == 1.0


def test_routes_lead_to_routes():
    inner = ByColumn("level", (Route("1", ExactMatch()),))
    reward = ByColumn("domain", (Route("sums", inner),))
    nested = Task("k", "?", "4", columns={"domain": "sums", "level": 1})
    assert results(reward, nested, rollout("4"))[0].reward_terms == {
        "correct": 1.0,
        "correct/sums/1": 1.0,
    }
    with pytest.raises(ConfigError, match=r"has '2' in the column 'level'"):
        reward.validate_tasks([Task("k", "?", columns={"domain": "sums", "level": 2})])


def test_a_reward_sees_and_refuses_the_tasks_of_its_route_only():
    routes = (Route("gcd", ReasoningGymVerifier()), Route("sums", ExactMatch()))
    env = SingleTurn((RewardTerm("correct", ByColumn("source", routes)),))
    gym_tasks = list(ReasoningGym("gcd", size=2).load())
    check_component_tasks(env, [*gym_tasks, Task("k", "?", "4", source="sums")])
    with pytest.raises(ConfigError, match=r"no column 'entry'"):
        check_component_tasks(env, [*gym_tasks, Task("k", "?", "4", source="gcd")])


def test_the_range_is_that_of_all_routes_if_all_declare_one():
    def declared(*routes):
        return declared_reward_range(SingleTurn((RewardTerm("r", ByColumn("d", routes)),)))

    assert declared(Route("a", ExactMatch()), Route("b", ExactMatch())) == (0.0, 1.0)
    assert declared(*ROUTES) is None


@pytest.mark.parametrize("routes", [(), (ROUTES[0], ROUTES[0])])
def test_no_routes_and_doubled_values_are_config_errors(routes):
    with pytest.raises(ConfigError, match=r"routes: of .*Allowed: at least one, no value twice"):
        ByColumn("domain", routes)


def test_it_prints_as_code_and_returns_from_its_record():
    reward = ByColumn("domain", ROUTES)
    assert from_data(to_data(reward)) == reward
    namespace = {c.__name__: c for c in (ByColumn, Route, ExactMatch, LengthPenalty)}
    assert eval(to_code(reward), namespace) == reward


def test_a_recipe_file_holds_routes(tmp_path):
    (tmp_path / "recipe.toml").write_text(
        "tasks = 'tasks.jsonl'\npolicy = {model = 'owner/name'}\n[[env.rewards]]\n"
        "name = 'correct'\n[env.rewards.fn]\ntype = 'ByColumn'\ncolumn = 'domain'\n"
        "routes = [{value = 'sums', fn = 'ExactMatch()', time_limit = 3.0}]\n"
    )
    recipe = load_recipe_file(tmp_path / "recipe.toml")
    expected = ByColumn("domain", (Route("sums", ExactMatch(), 3.0),))
    assert recipe.env == SingleTurn((RewardTerm("correct", expected),))
    (tmp_path / "written.toml").write_text(recipe_to_toml(recipe))
    assert load_recipe_file(tmp_path / "written.toml").env == recipe.env
