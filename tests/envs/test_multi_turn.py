"""Environments of several turns: observations, rewards, step values and failures."""

import asyncio
import re
from dataclasses import replace

import pytest

from grupo.algo.advantages.turn_table import turn_returns, turn_states
from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Group, Rollout
from grupo.envs import FallbackReward, MultiTurn, RewardTerm
from grupo.envs.multi_turn import hash_label
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_play import TASK, SumGame, TextActor, play, response, sum_env


def test_a_rollout_continues_until_the_environment_is_done():
    actor = TextActor("1", "2", "9")
    rollout = asyncio.run(run_rollout(TASK, sum_env().open(), actor))
    assert actor.observations == ["total 0", "total 1"]
    assert [observation for observation, _ in rollout.turns] == actor.observations


def test_a_rollout_ends_after_max_turns():
    (rollout,) = play(sum_env(max_turns=2), ["1", "1", "1"])
    assert len(rollout.turns) == 2
    assert (rollout.reward, rollout.reward_terms["done"]) == (pytest.approx(0.02), 0.0)


def test_the_reward_is_the_step_rewards_plus_the_weighted_reward_terms():
    short = RewardTerm("short", lambda task, rollout: -float(rollout.length), 0.1)
    (rollout,) = play(sum_env(rewards=(short,)), ["1", "02"])
    assert rollout.reward == pytest.approx(0.01 + 1.01 + 0.1 * -3)
    assert rollout.reward_terms == pytest.approx(
        {"env_reward": 1.02, "turns": 2.0, "done": 1.0, "digits": 3.0, "short": -3.0}
    )


def test_step_rewards_are_at_the_last_token_of_a_turn_and_the_outcome_at_the_last_of_all():
    half = RewardTerm("half", lambda task, rollout: 0.5)
    (rollout,) = play(sum_env(rewards=(half,)), ["01", "002"])
    values = rollout.step_values
    assert values["reward"] == pytest.approx((0, 0.01, 0, 0, 1.01 + 0.5))
    assert values["state"] == (hash_label("total 0"),) * 2 + (hash_label("total 1"),) * 3
    assert values["action"] == (hash_label("01"),) * 2 + (hash_label("002"),) * 3


def test_a_batch_has_the_step_values_as_turn_rewards_and_states():
    rollouts = play(sum_env(), ["1", "2"], ["01", "1", "1"])
    batch = collate([Group(TASK, rollouts)], lambda rows: None)
    table = turn_returns(batch, gamma=1.0)  # 0.01 + 1.01; 0.01 + 0.01 + 1.01
    assert [pytest.approx(row) for row in ([1.02, 1.01, 0.0], [1.03, 1.02, 1.01])] == table.tolist()
    total = [hash_label(f"total {n}") for n in range(3)]
    assert turn_states(batch).tolist() == [[*total[:2], float("-inf")], total]


def test_consecutive_responses_without_an_observation_are_one_turn():
    async def work():
        env = sum_env().open()
        rollout = Rollout().append_turn("total 0", response("1"))
        rollout = rollout.append_turn("", response("2", observation_length=0))
        assert await env.reply(TASK, rollout) == "total 12"
        return await score_group(TASK, env, [rollout.append_turn("total 12", response("3"))])

    (rollout,) = asyncio.run(work()).rollouts
    assert rollout.reward_terms["turns"] == 2
    assert rollout.step_values["reward"] == pytest.approx((0, 0.01, 0.01))


def test_the_step_reward_is_at_the_last_token_in_the_loss():
    async def work():
        rollout = Rollout().append_turn("total 0", response("1"))
        forced = response("2", observation_length=0, in_loss=False)
        return await score_group(TASK, sum_env().open(), [rollout.append_turn("", forced)])

    (rollout,) = asyncio.run(work()).rollouts
    assert rollout.step_values["reward"] == pytest.approx((0.01, 0))


def test_an_environment_that_raises_fails_one_rollout_only():
    good, bad = play(sum_env(), ["1", "2"], ["1", "two"])
    assert (good.error, good.reward) == ("", pytest.approx(1.02))
    assert len(bad.turns) == 2
    message = "task key, rollout 1: the environment raised ValueError: invalid literal"
    assert bad.error.startswith(message)
    assert bad.error.endswith("at turn 2")


def test_on_failure_decides_the_result_of_a_failed_rollout():
    (bad,) = play(sum_env(on_failure=FallbackReward(-1.0)), ["two"])
    assert (bad.reward, bad.reward_terms["failed"], bad.error) == (-1.0, 1.0, "")


class FailingReset(SumGame):
    def reset(self, task):
        raise OSError("no such server")


def test_an_environment_whose_reset_fails_fails_after_one_answer_to_the_prompt():
    (rollout,) = play(MultiTurn(FailingReset), ["1", "2"])
    assert [observation for observation, _ in rollout.turns] == [TASK.prompt]
    message = (
        r"the environment raised OSError: no such server \(.*test_multi_turn.py:\d+\) at turn 0"
    )
    assert re.search(message, rollout.error)


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (("", 0.0, False), "returned no observation, and is not done"),
        (("on", float("nan"), False), "returned nan"),
        (("on", "1", False), "returned a str, not a number"),
        ("text", "TypeError"),
        (None, "TypeError"),
    ],
)
def test_invalid_step_results_fail_the_rollout(returned, error):
    class InvalidStep(SumGame):
        def step(self, text):
            return returned

    (rollout,) = play(MultiTurn(InvalidStep), ["1", "2"])
    assert error in rollout.error


def test_a_response_after_the_end_fails_the_rollout():
    rollout = Rollout().append_turn("total 0", response("3")).append_turn("total 3", response("1"))
    (rollout,) = asyncio.run(score_group(TASK, sum_env().open(), [rollout])).rollouts
    assert rollout.error.endswith("the policy acted after the environment was done")


def test_a_rollout_ends_where_the_context_has_no_room_for_an_answer():
    empty_response = response("", observation_length=0)
    rollout = Rollout().append_turn("total 0", response("1")).append_turn("total 1", empty_response)

    async def work():
        env = sum_env().open()
        assert await env.reply(TASK, rollout) is None
        empty = Rollout().append_turn("total 0", empty_response)
        assert await env.reply(TASK, empty) is None
        return await score_group(TASK, env, [rollout, empty])

    short, empty = asyncio.run(work()).rollouts
    assert (short.error, short.reward_terms["turns"]) == ("", 1)
    assert short.step_values["reward"] == (0.01,)
    assert "left no room for an answer" in empty.error


def test_later_observations_are_messages_of_the_role():
    actor = TextActor("1", "2")
    asyncio.run(run_rollout(TASK, sum_env(role="tool").open(), actor))
    assert actor.observations == ["total 0", ({"role": "tool", "content": "total 1"},)]


def test_invalid_fields_are_config_errors():
    term = RewardTerm("one", lambda task, rollout: 1.0)
    for fields, message in (
        ({"rewards": (term, term)}, "rewards: named"),
        ({"rewards": (replace(term, name="env_reward"),)}, "rewards: named"),
        ({"max_turns": 0}, "max_turns: 0"),
        ({"max_concurrent": 0}, "max_concurrent: 0"),
        ({"time_limit": 0.0}, "time_limit: 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            MultiTurn(SumGame, **fields)
