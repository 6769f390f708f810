"""The limit of tokens per step: lost replies, the last step of a group, and refused recipes."""

import pytest

from grupo.config.validate import check_recipe
from grupo.core.interfaces import open_env
from grupo.core.schedules import Linear
from grupo.core.types import Rollout, Task
from grupo.envs import MultiTurn
from grupo.envs.multiplayer import MultiplayerEnv
from grupo.envs.session_cache import turn_texts
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.samplers.multi_temperature import MultiTemperature
from grupo.training.collect.sampling_round import SamplingRound
from grupo.training.collect.unfinished_groups import UNLIMITED, GroupInProgress, RolloutTokenLimit
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import scripted_play
from tests.helpers.limited_recipes import limited
from tests.helpers.training_components import METHOD, LetterGame, save_models
from tests.helpers.training_recipes import recipe


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


class LosingGame:
    """A `MultiTurn` in use that loses its first reply to each text."""

    def __init__(self, env):
        self.env = env
        self.lost = {}

    def lost_reply_cause(self, task, rollout):
        texts = [turn_texts(rollout)[:n] for n in range(len(rollout.turns) + 1)]
        return next((self.lost[task.key, t] for t in texts if self.lost.get((task.key, t))), "")

    async def reply(self, task, rollout):
        key = task.key, turn_texts(rollout)
        if key[1] and key not in self.lost:
            self.lost[key] = "the process was killed"
            return None
        self.lost[key] = ""
        return await self.env.reply(task, rollout)

    async def score(self, task, rollouts):
        return await self.env.score(task, rollouts)


def test_a_reply_that_was_lost_is_asked_for_again_in_the_next_step():
    env = LosingGame(open_env(MultiTurn(LetterGame, max_turns=2)))
    group = GroupInProgress(Task("key", "a"), 0, (0, 0))
    rollout = Rollout((("a", scripted_play.response("b")),))
    sampling_round = SamplingRound(GroupSampler(2), env, [group], RolloutTokenLimit(0, 2, 2))
    (record,) = sampling_round.records
    assert record

    async def replies():
        first = await sampling_round.reply(0, group.task, rollout)
        recorded = record.unfinished_group().observations
        return first, dict(recorded), await sampling_round.reply(0, group.task, rollout)

    first, recorded, second = run_coroutine(replies())
    assert (first, recorded) == (None, {})
    assert second is not None
    assert list(record.unfinished_group().observations.values()) == [second]


def test_the_last_step_of_a_group_has_no_limit():
    limit = RolloutTokenLimit(step=7, tokens_per_step=10, max_later_steps=2)
    assert [limit.max_tokens(first) for first in (5, 6, 7)] == [UNLIMITED, 10, 10]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"max_staleness": 1},
            "max_staleness: 1. Allowed with tokens_per_step=2 and answers of up to 6 tokens: 2 or"
            " more, because a group may be generated in 3 steps.",
        ),
        (
            {"tokens_per_step": 6},
            "tokens_per_step: 6, but answers end after policy.max_new_tokens, 6. Allowed: 0, or a"
            " smaller number than that.",
        ),
        (
            {"env": MultiplayerEnv(LetterGame)},
            "tokens_per_step: 2. Allowed: 0 with MultiplayerEnv, whose sessions end with the step",
        ),
        (
            {
                "method": METHOD.replace(
                    sampler=MultiTemperature(GroupSampler(2), 2, Linear(1.0, 1.2))
                )
            },
            "tokens_per_step: 2. Allowed: 0 with a sampler that has a schedule or a controller",
        ),
    ],
)
def test_recipes_whose_groups_cannot_be_continued_are_refused(model, changes, message):
    with pytest.raises(ConfigError, match="^" + message.replace(".", r"\.")):
        check_recipe(limited(model, 2, 2).replace(**changes))


@pytest.mark.parametrize("name", ["masked", "soft", "flow"])
def test_policies_that_do_not_generate_token_by_token_are_refused(model, name):
    changed = recipe(name, model).replace(tokens_per_step=2, max_staleness=2)
    policy = type(changed.policy).__name__
    with pytest.raises(ConfigError, match=rf"tokens_per_step: 2\. Allowed: 0 with {policy}"):
        check_recipe(changed)


def test_windows_of_a_sampler_are_refused(model):
    with pytest.raises(ConfigError, match=r"max_staleness: 2\. Allowed: 0 with WindowSampler"):
        check_recipe(recipe("windows", model).replace(tokens_per_step=2, max_staleness=2))
