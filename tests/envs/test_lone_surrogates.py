"""Halves of surrogate pairs, which no encoding has, in texts of environments and their errors."""

import json

import pytest

from grupo.core.types import Rollout
from grupo.envs import MultiTurn
from grupo.envs.openenv.validate import checked_result
from grupo.rewards.judges.session import parse_completion
from grupo.storage.journal import Journal
from grupo.storage.rollout_json import to_data
from tests.helpers.scripted_play import SumGame, play

LONE, REPLACED = "a\ud800b", "a\ufffdb"
MESSAGES = ({"role": "user", "content": [{"type": "text", "text": LONE}]},)


class LoneGame(SumGame):
    """Observes, or raises, half a surrogate pair."""

    observation = LONE

    def reset(self, task):
        super().reset(task)
        return self.observation

    def step(self, text):
        if text == "0":
            raise ValueError(LONE)
        return self.observation, *super().step(text)[1:]


class LoneChat(LoneGame):
    """Observes it in a part of a message."""

    observation = MESSAGES


def journaled(rollout: Rollout, folder) -> str:
    """The rollout in a journal, as text."""
    journal = Journal(folder / "rollouts.jsonl")
    journal.append(to_data(rollout))
    return json.dumps(journal.read()[0], ensure_ascii=False)


@pytest.mark.parametrize("game", [LoneGame, LoneChat])
def test_observations_have_the_replacement_character_in_the_step_and_in_the_journal(game, tmp_path):
    (rollout,) = play(MultiTurn(game, time_limit=60.0), ["1", "2"])
    assert rollout.error == ""
    assert len(rollout.turns) == 2
    text = journaled(rollout, tmp_path)
    assert text.count(REPLACED) == 2
    text.encode()


def test_an_error_of_an_environment_has_it(tmp_path):
    (rollout,) = play(MultiTurn(LoneGame, time_limit=60.0), ["0"])
    assert f"ValueError: {REPLACED}" in rollout.error
    journaled(rollout, tmp_path).encode()


def test_an_observation_of_openenv_has_it():
    class Result:
        observation, reward, done = {LONE: [LONE, 3]}, 1.0, False

    assert checked_result(Result()) == ({REPLACED: [REPLACED, 3]}, 1.0, False)


def test_a_reply_of_a_judge_has_it():
    choice = {"message": {"content": LONE}, "finish_reason": LONE}
    reply = parse_completion({"choices": [choice]})
    assert (reply.text, reply.finish_reason) == (REPLACED, "stop")
