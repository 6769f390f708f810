"""Games between rollouts: who hears and learns what, what each is paid, and what becomes of it when
one fails."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from grupo.algo.advantages import ByRewardTerm, Center, GroupedBy
from grupo.core.interfaces import run_rollout
from grupo.core.types import Group
from grupo.envs import FallbackReward, MultiplayerEnv, RewardTerm
from grupo.envs.multi_turn import hash_label
from grupo.envs.random_opponent import RandomOpponent
from grupo.rollouts.samplers import SelfPlay
from grupo.training.collate import collate
from tests.helpers.scripted_play import Saying, said
from tests.helpers.scripted_play import played as alone
from tests.helpers.toy_games import TASK, Players, Sticks, played

GAME = (["1", "1"], ["1"])  # three sticks: the first player takes the last


def test_a_game_is_a_rollout_for_each_player_of_its_own_words():
    (first, second), heard = played(GAME)
    assert heard == [[["3 for 0", "1 for 0"], ["2 for 1"]]]
    assert [[a.text for _, a in r.turns] for r in (first, second)] == [["1", "1"], ["1"]]
    assert [[seen for seen, _ in r.turns] for r in (first, second)] == heard[0]
    assert all(a.in_loss for r in (first, second) for _, a in r.turns)
    assert [r.reward_terms["seat"] for r in (first, second)] == [0, 1]


def test_each_is_paid_for_what_came_of_its_turns():
    (first, second), _ = played(GAME)
    assert (first.reward, second.reward) == (1.0, -1.0)
    assert first.step_values["reward"] == (0.0, 1.0)
    assert second.step_values["reward"] == (-1.0,)  # though the last move was the other's
    assert first.step_values["state"] == (hash_label("3 for 0"), hash_label("1 for 0"))
    assert first.reward_terms == {"world": 1.0, "turns": 2.0, "over": 1.0, "seat": 0.0}


class Generous(Sticks):
    def _to(self, player, paid):
        return super()._to(player if abs(paid) == 1 else 1 - player, abs(paid))


def test_all_that_the_others_turns_pay_is_paid_at_ones_own_last():
    (first, second), _ = played((["1"], ["again", "again", "2"]), world=Generous)
    assert first.step_values["reward"] == pytest.approx(
        (1.0 + 2 * 0.1,)
    )  # both are paid 1 at the end
    assert second.step_values["reward"] == (*[0.0] * 10, 1.0)


def test_players_need_not_take_turns_in_turn():
    (first, second), heard = played((["again", "1"], ["again", "again", "2"]))
    assert heard == [[["3 for 0"] * 2, ["2 for 1"] * 3]]
    assert first.step_values["reward"] == pytest.approx((*[0] * 4, -0.1, -1.0))
    assert second.reward == pytest.approx(1 - 0.2)
    assert (first.reward_terms["again"], second.reward_terms["again"]) == (1, 2)


def test_groups_are_of_the_rollouts_of_one_seat():
    rollouts, _ = played(GAME, (["2"], ["1"]), GAME)  # the second game is won by the second player
    batch = collate([Group(TASK, rollouts)], lambda rows: None)
    credit = GroupedBy(Center(), ByRewardTerm("seat"))(batch.reward, batch)
    assert batch.reward.tolist() == [1, -1, -1, 1, 1, -1]
    thirds = [x / 3 for x in (2, -2, -4, 4, 2, -2)]  # means 1/3 and -1/3
    assert credit.tolist() == pytest.approx(thirds)


def test_the_same_words_are_played_once():
    rollouts, _ = played(GAME, GAME)
    assert rollouts[:2] == rollouts[2:]
    assert Sticks.opened == 1


def test_a_world_that_raises_ends_one_game_by_name_and_no_other():
    rollouts, heard = played((["1", "one"], ["1"]), GAME)
    assert [bool(r.error) for r in rollouts] == [True, True, False, False]
    assert all("the world raised ValueError: invalid literal" in r.error for r in rollouts[:2])
    assert [r.reward for r in rollouts[2:]] == [1.0, -1.0]
    assert heard[0][1] == ["2 for 1"]  # the other is not asked again


def test_a_world_that_hangs_ends_one_game_by_name_and_no_other():
    rollouts, _ = played((["hang"], []), GAME, time_limit=0.2)
    assert [bool(r.error) for r in rollouts] == [True, True, False, False]
    assert "did not answer within 0.2 s" in rollouts[1].error


def test_what_becomes_of_a_failed_game_is_chosen():
    (first, second), _ = played((["1", "one"], ["1"]), on_failure=FallbackReward(-1.0))
    assert (first.reward, second.reward, first.error) == (-1.0, -1.0, "")


class Unready(Sticks):
    def reset(self, task):
        raise OSError("no board")


def test_a_game_that_does_not_begin_fails_and_nobody_is_asked():
    rollouts, heard = played(GAME, world=Unready)
    assert all("the world raised OSError: no board at turn 0" in r.error for r in rollouts)
    assert heard == [[[], []]]


class Lost(Sticks):
    def _told(self):
        return super()._told()._replace(to=2)


def test_a_turn_that_is_nobodys_fails_and_nobody_waits_for_ever():
    rollouts, _ = played(GAME, world=Lost)
    assert all("the world gave the turn to player 2 of 2" in r.error for r in rollouts)


def test_who_never_had_a_turn_is_left_out_by_name():
    (first, second), _ = played((["3"], []))
    assert (first.reward, first.error) == (1.0, "")
    assert second.turns == ()
    assert second.error == "task sticks, rollout 1: it never had a turn"
    (winner,), _ = played((["3"], []), on_failure=FallbackReward(-1.0))
    assert winner.reward == 1.0


def test_a_game_ends_for_all_where_a_player_has_no_turns_left():
    (first, second), heard = played((["again", "1", "1"], ["1"]), turns=2)
    assert [len(r.turns) for r in (first, second)] == [2, 0]
    assert (first.reward_terms["over"], first.reward) == (0.0, pytest.approx(-0.1))
    assert heard[0][1] == []


def test_a_game_ends_for_all_where_a_player_has_no_room_to_answer():
    class Silent(Saying):
        async def __call__(self, rollout, seen):
            return said("", seen=0)

    act = Players(GAME)
    act.decode_seconds[0][1] = Silent()
    group = asyncio.run(SelfPlay(1)(TASK, MultiplayerEnv(Sticks), act))
    assert [len(r.turns) for r in group.rollouts] == [1, 1]
    assert (group.rollouts[0].reward, group.rollouts[0].reward_terms["over"]) == (0.0, 0.0)
    assert "left no room" in group.rollouts[1].error


def test_named_rewards_judge_every_player():
    wordy = RewardTerm("short", lambda task, rollout: -float(rollout.length), 0.1)
    (first, second), _ = played(GAME, rewards=(wordy,))
    assert (first.reward, second.reward) == pytest.approx((1 - 0.2, -1 - 0.1))


def test_a_turn_may_be_said_in_pieces():
    async def twice(act, rollout, seen):
        rollout = rollout.then(seen, await act(rollout, seen))
        return rollout.then("", await act(rollout, ""))

    class Pieces(Saying):
        async def __call__(self, rollout, seen):
            return said(self.texts.pop(0), seen=bool(seen))

    act = Players(GAME)
    act.decode_seconds = [[Pieces("0", "1", "0", "1"), Pieces("0", "1")]]
    group = asyncio.run(SelfPlay(1, turn_strategy=twice)(TASK, MultiplayerEnv(Sticks), act))
    assert [r.reward for r in group.rollouts] == [1.0, -1.0]
    assert group.rollouts[0].reward_terms["turns"] == 2


def test_as_many_games_are_played_as_there_are_attempts_for():
    act = Players(GAME, GAME)
    group = asyncio.run(SelfPlay(9)(replace(TASK, group_size=3), MultiplayerEnv(Sticks), act))
    assert len(group.rollouts) == 4
    assert SelfPlay(3).group_size == 6


def one_by_one(said, chance):
    """A house that takes one stick, whatever it is told."""
    return "1"


@pytest.mark.parametrize(("seat", "words"), [(0, ["1", "1"]), (0, ["2"]), (1, ["1"]), (1, ["2"])])
def test_alone_it_plays_the_house_as_it_would_play_another_who_says_the_same(seat, words):
    other = ["1", "1"]
    rollouts, _ = played((words, other) if seat == 0 else (other, words))
    task = replace(TASK, columns={"seat": seat})
    (guest,) = alone(MultiplayerEnv(Sticks, opponent=one_by_one), words, task=task)
    mine = rollouts[seat]
    assert (guest.reward, guest.step_values, guest.turns) == (
        mine.reward,
        mine.step_values,
        mine.turns,
    )


def test_an_arena_is_refused_what_other_worlds_are():
    with pytest.raises(Exception, match="turns: 0"):
        MultiplayerEnv(Sticks, max_turns=0)


def test_the_house_does_one_of_what_it_was_offered_last():
    told = "For example '[4]'.\nMoves: '[1]', '[2]'\nYour turn."
    assert {RandomOpponent()(told, Random(i)) for i in range(9)} == {"[1]", "[2]"}
    chat = ({"role": "user", "content": told},)
    assert RandomOpponent(r"\d")(chat, Random(0)) in {"1", "2"}
    assert RandomOpponent()("nothing", Random(0)) == ""


def test_a_rollout_that_began_elsewhere_is_no_player():
    (rollout,) = alone(MultiplayerEnv(Sticks, opponent=one_by_one), ["3"], task=TASK)
    assert (rollout.reward, "seat" in rollout.reward_terms) == (1.0, False)
    assert asyncio.run(
        run_rollout(TASK, MultiplayerEnv(Sticks, opponent=one_by_one), Saying("3"))
    ).turns
