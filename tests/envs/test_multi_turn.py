"""A world of many turns: what it says, pays and remembers, and what becomes of it when it fails."""

import asyncio
from dataclasses import replace

import pytest

from grupo.algo.advantages.turn_table import turn_returns, turn_states
from grupo.core.errors import ConfigError
from grupo.core.interfaces import run_rollout, score_group
from grupo.core.types import Group, Rollout
from grupo.envs import FallbackReward, MultiTurn, RewardTerm
from grupo.envs.multi_turn import hash_label
from grupo.training.collate import collate
from tests.helpers.scripted_play import TASK, Adding, Saying, adding, played, said


def test_a_rollout_goes_on_until_the_world_is_over():
    act = Saying("1", "2", "9")
    rollout = asyncio.run(run_rollout(TASK, adding(), act))
    assert act.heard == ["total 0", "total 1"]
    assert [seen for seen, _ in rollout.turns] == act.heard


def test_a_rollout_ends_after_so_many_turns():
    (rollout,) = played(adding(turns=2), ["1", "1", "1"])
    assert len(rollout.turns) == 2
    assert (rollout.reward, rollout.reward_terms["over"]) == (pytest.approx(0.02), 0.0)


def test_the_reward_is_what_the_world_paid_and_rewards_say():
    short = RewardTerm("short", lambda task, rollout: -float(rollout.length), 0.1)
    (rollout,) = played(adding(rewards=(short,)), ["1", "02"])
    assert rollout.reward == pytest.approx(0.01 + 1.01 + 0.1 * -3)
    assert rollout.reward_terms == pytest.approx(
        {"world": 1.02, "turns": 2.0, "over": 1.0, "digits": 3.0, "short": -3.0}
    )


def test_marks_pay_each_turn_at_its_last_part_and_the_outcome_with_the_last():
    half = RewardTerm("half", lambda task, rollout: 0.5)
    (rollout,) = played(adding(rewards=(half,)), ["01", "002"])
    assert rollout.step_values["reward"] == pytest.approx((0, 0.01, 0, 0, 1.01 + 0.5))
    assert (
        rollout.step_values["state"] == (hash_label("total 0"),) * 2 + (hash_label("total 1"),) * 3
    )
    assert rollout.step_values["action"] == (hash_label("01"),) * 2 + (hash_label("002"),) * 3


def test_a_batch_reads_the_marks_as_step_rewards_and_states():
    rollouts = played(adding(), ["1", "2"], ["01", "1", "1"])
    batch = collate([Group(TASK, rollouts)], lambda rows: None)
    table = turn_returns(batch, gamma=1.0)  # 0.01 + 1.01; 0.01 + 0.01 + 1.01
    assert [pytest.approx(row) for row in ([1.02, 1.01, 0.0], [1.03, 1.02, 1.01])] == table.tolist()
    total = [hash_label(f"total {n}") for n in range(3)]
    assert turn_states(batch).tolist() == [[*total[:2], float("-inf")], total]


def test_what_was_said_in_pieces_is_one_turn():
    async def work():
        env = adding()
        rollout = Rollout().append_turn("total 0", said("1")).append_turn("", said("2", seen=0))
        assert await env.reply(TASK, rollout) == "total 12"
        return await score_group(TASK, env, [rollout.append_turn("total 12", said("3"))])

    (rollout,) = asyncio.run(work()).rollouts
    assert rollout.reward_terms["turns"] == 2
    assert rollout.step_values["reward"] == pytest.approx((0, 0.01, 0.01))


def test_a_turn_is_paid_at_the_last_part_that_is_learned():
    async def work():
        rollout = Rollout().append_turn("total 0", said("1"))
        return await score_group(
            TASK, adding(), [rollout.append_turn("", said("2", seen=0, learned=False))]
        )

    (rollout,) = asyncio.run(work()).rollouts
    assert rollout.step_values["reward"] == pytest.approx((0.01, 0))


def test_a_world_that_raises_ends_one_rollout_by_name_and_no_other():
    good, bad = played(adding(), ["1", "2"], ["1", "two"])
    assert (good.error, good.reward) == ("", pytest.approx(1.02))
    assert len(bad.turns) == 2
    assert bad.error.startswith("task key, rollout 1: the world raised ValueError: invalid literal")
    assert bad.error.endswith("at turn 2")


def test_a_world_that_hangs_ends_one_rollout_by_name_and_no_other():
    good, bad = played(adding(time_limit=0.1), ["1", "2"], ["hang"])
    assert good.error == ""
    assert bad.error == "task key, rollout 1: the world did not answer within 0.1 s at turn 1"


def test_what_becomes_of_a_failure_is_chosen():
    (bad,) = played(adding(on_failure=FallbackReward(-1.0)), ["two"])
    assert (bad.reward, bad.reward_terms["failed"], bad.error) == (-1.0, 1.0, "")


class Unready(Adding):
    def reset(self, task):
        raise OSError("no such server")


def test_a_world_that_does_not_begin_fails_after_one_answer_to_the_prompt():
    (rollout,) = played(MultiTurn(Unready), ["1", "2"])
    assert [seen for seen, _ in rollout.turns] == [TASK.prompt]
    assert "the world raised OSError: no such server at turn 0" in rollout.error


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (("", 0.0, False), "it said nothing, and is not over"),
        (("on", float("nan"), False), "returned nan"),
        (("on", "1", False), "returned a str, not a number"),
        ("text", "TypeError"),
        (None, "TypeError"),
    ],
)
def test_answers_that_are_none_fail_by_name(answer, why):
    class Odd(Adding):
        def step(self, text):
            return answer

    (rollout,) = played(MultiTurn(Odd), ["1", "2"])
    assert why in rollout.error


def test_going_on_after_the_end_fails_by_name():
    rollout = Rollout().append_turn("total 0", said("3")).append_turn("total 3", said("1"))
    (rollout,) = asyncio.run(score_group(TASK, adding(), [rollout])).rollouts
    assert rollout.error.endswith("the policy went on after the world was over")


def test_a_rollout_ends_where_no_room_was_left_to_answer():
    rollout = Rollout().append_turn("total 0", said("1")).append_turn("total 1", said("", seen=0))

    async def work():
        env = adding()
        assert await env.reply(TASK, rollout) is None
        empty = Rollout().append_turn("total 0", said("", seen=0))
        assert await env.reply(TASK, empty) is None
        return await score_group(TASK, env, [rollout, empty])

    short, empty = asyncio.run(work()).rollouts
    assert (short.error, short.reward_terms["turns"], short.step_values["reward"]) == (
        "",
        1,
        (0.01,),
    )
    assert "left no room for an answer" in empty.error


def test_later_texts_are_messages_of_a_role_where_one_is_given():
    act = Saying("1", "2")
    asyncio.run(run_rollout(TASK, adding(role="tool"), act))
    assert act.heard == ["total 0", ({"role": "tool", "content": "total 1"},)]


def test_worlds_that_cannot_be_are_refused():
    one = RewardTerm("one", lambda task, rollout: 1.0)
    for fields, said_of_it in (
        ({"rewards": (one, one)}, "rewards: named"),
        ({"rewards": (replace(one, name="world"),)}, "rewards: named"),
        ({"turns": 0}, "turns: 0"),
        ({"at_once": 0}, "at_once: 0"),
        ({"time_limit": 0.0}, "time_limit: 0"),
    ):
        with pytest.raises(ConfigError, match=said_of_it):
            MultiTurn(Adding, **fields)
