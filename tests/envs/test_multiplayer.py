"""Games between rollouts: observations, rewards and failures of each player."""

import asyncio
import re
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
from grupo.training.update.collate import collate
from tests.helpers.scripted_play import TextActor, play, response
from tests.helpers.toy_games import TASK, GameActor, SticksGame, play_games

GAME = (["1", "1"], ["1"])  # three sticks: the first player takes the last


def test_each_player_has_a_rollout_of_its_own_observations_and_texts():
    (first, second), observations = play_games(GAME)
    assert observations == [[["3 for 0", "1 for 0"], ["2 for 1"]]]
    assert [[a.text for _, a in r.turns] for r in (first, second)] == [["1", "1"], ["1"]]
    assert all(a.in_loss for r in (first, second) for _, a in r.turns)
    assert [r.reward_terms["seat"] for r in (first, second)] == [0, 1]


def test_each_turn_gets_the_rewards_until_the_players_next_turn():
    (first, second), _ = play_games(GAME)
    assert (first.reward, second.reward) == (1.0, -1.0)
    assert first.step_values["reward"] == (0.0, 1.0)
    assert second.step_values["reward"] == (-1.0,)  # though the first player moved last
    assert first.step_values["state"] == (hash_label("3 for 0"), hash_label("1 for 0"))
    expected = {"env_reward": 1.0, "turns": 2.0, "done": 1.0, "seat": 0.0}
    assert first.reward_terms == expected


class RewardForOthers(SticksGame):
    def _reward_of(self, player, reward):
        return super()._reward_of(player if abs(reward) == 1 else 1 - player, abs(reward))


def test_rewards_during_the_others_turns_belong_to_the_players_last_turn():
    games = (["1"], ["again", "again", "2"])
    (first, second), _ = play_games(games, env_factory=RewardForOthers)
    assert first.step_values["reward"] == pytest.approx((1.0 + 2 * 0.1,))  # both win 1 at the end
    assert second.step_values["reward"] == (*[0.0] * 10, 1.0)


def test_turns_need_not_alternate():
    (first, second), observations = play_games((["again", "1"], ["again", "again", "2"]))
    assert observations == [[["3 for 0"] * 2, ["2 for 1"] * 3]]
    assert first.step_values["reward"] == pytest.approx((*[0] * 4, -0.1, -1.0))
    assert second.reward == pytest.approx(1 - 0.2)
    assert (first.reward_terms["again"], second.reward_terms["again"]) == (1, 2)


def test_players_of_one_seat_can_be_compared():
    # the second game is won by the second player
    rollouts, _ = play_games(GAME, (["2"], ["1"]), GAME)
    batch = collate([Group(TASK, rollouts)], lambda rows: None)
    advantage = GroupedBy(Center(), ByRewardTerm("seat"))(batch.reward, batch)
    assert batch.reward.tolist() == [1, -1, -1, 1, 1, -1]
    thirds = [x / 3 for x in (2, -2, -4, 4, 2, -2)]  # means 1/3 and -1/3
    assert advantage.tolist() == pytest.approx(thirds)


def test_games_with_equal_texts_are_played_once():
    rollouts, _ = play_games(GAME, GAME)
    for one, other in zip(rollouts[:2], rollouts[2:], strict=True):
        assert one == replace(other, seat=one.seat)
    assert SticksGame.resets == 1


def test_an_environment_that_raises_fails_one_game_only():
    rollouts, observations = play_games((["1", "one"], ["1"]), GAME)
    assert [bool(r.error) for r in rollouts] == [True, True, False, False]
    message = "the environment raised ValueError: invalid literal"
    assert all(message in r.error for r in rollouts[:2])
    assert [r.reward for r in rollouts[2:]] == [1.0, -1.0]
    assert observations[0][1] == ["2 for 1"]  # the second player has no further turn


def test_an_answer_that_makes_the_environment_hang_ends_one_game_without_a_result_for_others():
    rollouts, _ = play_games((["1", "1"], ["hang"]), GAME, time_limit=0.1, answer_error_reward=-1.0)
    first, second = rollouts[:2]
    assert first.error.endswith("another player's answer made it hang")
    assert (second.error, second.reward) == ("", -1.0)
    assert second.reward_terms["answer_error"] == 1.0
    assert [r.reward for r in rollouts[2:]] == [1.0, -1.0]


def test_an_answer_that_hangs_a_game_against_an_opponent_is_an_answer_error():
    env = MultiplayerEnv(SticksGame, opponent=take_one, time_limit=0.1, answer_error_reward=-1.0)
    (rollout,) = play(env, ["hang"], task=TASK)
    assert (rollout.reward, rollout.reward_terms["answer_error"]) == (-1.0, 1.0)


def test_on_failure_decides_the_results_of_a_failed_game():
    handler = FallbackReward(-1.0)
    (first, second), _ = play_games((["1", "one"], ["1"]), on_failure=handler)
    assert (first.reward, second.reward, first.error) == (-1.0, -1.0, "")


class FailingReset(SticksGame):
    def reset(self, task):
        raise OSError("no board")


def test_a_game_whose_reset_fails_has_no_turns():
    rollouts, observations = play_games(GAME, env_factory=FailingReset)
    message = r"the environment raised OSError: no board \(.*test_multiplayer.py:\d+\) at turn 0"
    assert all(re.search(message, r.error) for r in rollouts)
    assert observations == [[[], []]]


class NonexistentPlayer(SticksGame):
    def _observe(self):
        return super()._observe()._replace(next_player=2)


def test_a_turn_of_a_nonexistent_player_fails_the_game():
    rollouts, _ = play_games(GAME, env_factory=NonexistentPlayer)
    message = "the environment gave the turn to player 2 of 2"
    assert all(message in r.error for r in rollouts)


def test_a_player_without_a_turn_fails_with_a_reason():
    (first, second), _ = play_games((["3"], []))
    assert (first.reward, first.error) == (1.0, "")
    assert second.turns == ()
    assert second.error == "task sticks, rollout 1: the player never had a turn"
    (winner,), _ = play_games((["3"], []), on_failure=FallbackReward(-1.0))
    assert winner.reward == 1.0


def test_a_game_ends_for_all_when_a_player_has_no_turns_left():
    (first, second), observations = play_games((["again", "1", "1"], ["1"]), max_turns=2)
    assert [len(r.turns) for r in (first, second)] == [2, 0]
    assert (first.reward_terms["done"], first.reward) == (0.0, pytest.approx(-0.1))
    assert observations[0][1] == []


def test_a_game_ends_for_all_when_a_player_has_no_room_for_an_answer():
    class NoRoomActor(TextActor):
        async def __call__(self, rollout, observation):
            return response("", observation_length=0)

    actor = GameActor(GAME)
    actor.players[0][1] = NoRoomActor()
    group = asyncio.run(SelfPlay(1)(TASK, MultiplayerEnv(SticksGame).open(), actor))
    assert [len(r.turns) for r in group.rollouts] == [1, 1]
    assert (group.rollouts[0].reward, group.rollouts[0].reward_terms["done"]) == (0.0, 0.0)
    assert "left no room" in group.rollouts[1].error


def test_reward_terms_score_every_player():
    short = RewardTerm("short", lambda task, rollout: -float(rollout.length), 0.1)
    (first, second), _ = play_games(GAME, rewards=(short,))
    assert (first.reward, second.reward) == pytest.approx((1 - 0.2, -1 - 0.1))


def test_a_turn_may_have_several_responses():
    async def two_responses(actor, rollout, observation):
        rollout = rollout.append_turn(observation, await actor(rollout, observation))
        return rollout.append_turn("", await actor(rollout, ""))

    class SegmentActor(TextActor):
        async def __call__(self, rollout, observation):
            return response(self.texts.pop(0), observation_length=bool(observation))

    actor = GameActor(GAME)
    actor.players = [[SegmentActor("0", "1", "0", "1"), SegmentActor("0", "1")]]
    sampler = SelfPlay(1, turn_strategy=two_responses)
    group = asyncio.run(sampler(TASK, MultiplayerEnv(SticksGame).open(), actor))
    assert [r.reward for r in group.rollouts] == [1.0, -1.0]
    assert group.rollouts[0].reward_terms["turns"] == 2


def test_the_tasks_group_size_limits_the_number_of_games():
    actor = GameActor(GAME, GAME)
    task = replace(TASK, group_size=3)
    group = asyncio.run(SelfPlay(9)(task, MultiplayerEnv(SticksGame).open(), actor))
    assert len(group.rollouts) == 4
    assert SelfPlay(3).group_size == 6


def take_one(observation, rng):
    """An opponent that always takes one stick."""
    return "1"


@pytest.mark.parametrize(("seat", "texts"), [(0, ["1", "1"]), (0, ["2"]), (1, ["1"]), (1, ["2"])])
def test_a_game_against_an_opponent_equals_self_play_with_the_opponents_moves(seat, texts):
    opponent_texts = ["1", "1"]
    players = (texts, opponent_texts) if seat == 0 else (opponent_texts, texts)
    rollouts, _ = play_games(players)
    task = replace(TASK, columns={"seat": seat})
    (versus,) = play(MultiplayerEnv(SticksGame, opponent=take_one), texts, task=task)
    self_play = rollouts[seat]
    assert versus.reward == self_play.reward
    assert versus.step_values == self_play.step_values
    assert versus.turns == self_play.turns


def test_invalid_fields_are_config_errors():
    with pytest.raises(Exception, match="max_turns: 0"):
        MultiplayerEnv(SticksGame, max_turns=0)


def test_the_random_opponent_plays_one_of_the_moves_offered_last():
    text = "For example '[4]'.\nMoves: '[1]', '[2]'\nYour turn."
    assert {RandomOpponent()(text, Random(i)) for i in range(9)} == {"[1]", "[2]"}
    chat = ({"role": "user", "content": text},)
    assert RandomOpponent(r"\d")(chat, Random(0)) in {"1", "2"}
    assert RandomOpponent()("nothing", Random(0)) == ""


def test_a_rollout_without_a_seat_plays_against_the_opponent():
    env = MultiplayerEnv(SticksGame, opponent=take_one)
    (rollout,) = play(env, ["3"], task=TASK)
    assert (rollout.reward, "seat" in rollout.reward_terms) == (1.0, False)
    env = MultiplayerEnv(SticksGame, opponent=take_one).open()
    assert asyncio.run(run_rollout(TASK, env, TextActor("3"))).turns
