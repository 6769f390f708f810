"""The two-player game of sticks, and actors that play scripted texts in it."""

import asyncio
import time

from grupo.core.types import Task
from grupo.envs import MultiplayerEnv, StepResult
from grupo.rollouts.samplers import SelfPlay
from grupo.util.rng import make_rng
from tests.helpers.scripted_play import TextActor

TASK = Task("sticks", "Take the last stick.", 3)


class SticksGame:
    """The player that takes the last stick wins 1; "again" keeps the turn and costs 0.1."""

    resets = 0

    def reset(self, task):
        SticksGame.resets += 1
        self.sticks, self.turn = task.reference_answer, 0
        return self._observe()

    def step(self, text):
        if text == "again":
            rewards = self._reward_of(self.turn, -0.1)
            return self._observe()._replace(player_rewards=rewards, counts={"again": 1.0})
        if text == "hang":
            time.sleep(1)
        self.sticks -= int(text)
        if self.sticks <= 0:
            win, lose = self._reward_of(self.turn, 1.0), self._reward_of(1 - self.turn, -1.0)
            rewards = tuple(map(sum, zip(win, lose, strict=True)))
            return StepResult("", done=True, player_rewards=rewards)
        self.turn = 1 - self.turn
        return self._observe()

    def _observe(self):
        return StepResult(f"{self.sticks} for {self.turn}", next_player=self.turn)

    def _reward_of(self, player, reward):
        return tuple(reward * (seat == player) for seat in range(2))


class GameActor:
    """An actor whose forks play the texts of one player in one game."""

    def __init__(self, *games):
        self.players = [[TextActor(*texts) for texts in game] for game in games]

    def fork(self, game, seat):
        return self.players[game][seat]

    def rng(self, *label):
        return make_rng(0, *label)

    @property
    def observations(self):
        return [[player.observations for player in game] for game in self.players]


def play_games(*games, env_factory=SticksGame, task=TASK, players=2, **fields):
    """Play games with these texts of each player; the rollouts, and the players' observations."""
    actor, SticksGame.resets = GameActor(*games), 0
    sampler = SelfPlay(len(games), players)
    group = asyncio.run(sampler(task, MultiplayerEnv(env_factory, **fields).open(), actor))
    return group.rollouts, actor.observations
