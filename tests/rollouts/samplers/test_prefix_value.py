"""Values of beginnings of rollouts, by completions that are not returned."""

import asyncio
from collections import Counter
from dataclasses import replace
from math import log

import pytest

from grupo.core.types import Response, RewardResult, Rollout, Seat
from grupo.envs.image_generation import ImageGeneration
from grupo.envs.reward_term import RewardTerm
from grupo.models.flow import Flow
from grupo.rollouts.samplers import (
    AfterText,
    AtFractions,
    AtTurns,
    AtUnlikelyItems,
    GroupSampler,
    PrefixValue,
)
from grupo.rollouts.samplers.prefix_value import with_values
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_flow
from tests.helpers.scripted_actor import TASK, Once, script, texts
from tests.helpers.token_counts import TwoTurnEnv


def sample(sampler, actor, env=None):
    return asyncio.run(sampler(TASK, env or Once(), actor))


def coin(context, key):
    """Three letters of "a" or "b" by the stream, then the end; the prompt is one letter."""
    position = len(context) - 1
    return "." if position == 3 else "ab"[(key >> position) % 2]


def count_of_b(text):
    return text.count("b")


def test_the_value_of_a_beginning_is_the_mean_reward_of_its_completions():
    sampler = PrefixValue(GroupSampler(2), AtFractions((0.0, 0.5)), completions=400)
    actor = script(coin)
    group = sample(sampler, actor, Once(count_of_b))
    assert len(group.rollouts) == 2  # no completion is returned
    for rollout in group.rollouts:
        cuts, values = (rollout.step_values[n] for n in ("prefix_cut", "prefix_value"))
        assert cuts == (1.0, 0.0, 1.0, 0.0)  # of 4 letters, before the first and the third
        # three fair letters are to come, or one behind the first two
        assert values[0] == pytest.approx(1.5, abs=0.15)
        assert values[2] == pytest.approx(count_of_b(rollout.text[:2]) + 0.5, abs=0.1)
        assert values[1] == values[3] == 0.0


def test_rollouts_that_share_a_beginning_share_its_completions():
    actor = script(lambda context, key: "x" if len(context) < 4 else ".")
    sample(PrefixValue(GroupSampler(3), AtFractions((0.0, 0.5)), completions=5), actor)
    # three rollouts, and five completions of "Q" and of "Qxx": all rollouts are equal
    assert Counter(context for context, _ in actor.log) == {"Q": 3 + 5, "Qxx": 5}


def test_completions_are_fresh_and_independent():
    actor = script(coin)
    sample(PrefixValue(GroupSampler(1), AtFractions((0.0,)), completions=60), actor)
    assert len({text for _, text in actor.log[1:]}) == 8  # every text of three letters


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_the_rollouts_are_those_of_the_inner_sampler(cut):
    sampler = PrefixValue(GroupSampler(3), AtFractions((cut / 4,)), 2)
    inner = sample(GroupSampler(3), script(coin), Once(count_of_b))
    assert texts(sample(sampler, script(coin), Once(count_of_b))) == texts(inner)


def test_a_cut_before_a_turn_reads_the_environment_again():
    actor = script(lambda context, key: ".")
    group = sample(PrefixValue(GroupSampler(1), AtTurns(), 2), actor, TwoTurnEnv())
    (rollout,) = group.rollouts
    assert rollout.step_values["prefix_cut"] == (1.0, 1.0)
    # the rollout's two turns; two completions of both turns; two of the second turn
    assert Counter(context for context, _ in actor.log) == {"Q": 3, "Q.And?": 5}


def test_cuts_after_a_text_end_with_the_letter_that_completes_it():
    response = Response(tuple("ab,,c,"), (0.0,) * 6, ("Q",), "ab,,c,")
    rollout = Rollout().append_turn("Q", response)
    assert AfterText(",")(rollout, script(coin)) == [0, 3, 4]  # 6 is the rollout's length
    assert AfterText(",,")(rollout, script(coin)) == [0, 4]


def test_forced_items_are_never_unlikely():
    forced = Response((1, 2), (log(0.1), log(0.1)), in_loss=False)
    recited = Response((3,), (log(0.2),), sampled=False)
    sampled = Response((4, 5), (log(0.95), log(0.5)))
    turns = tuple(("", response) for response in (forced, recited, sampled))
    assert AtUnlikelyItems()(Rollout(turns)) == [4]


class BrokenEnv(Once):
    """An environment that cannot score completions."""

    async def score(self, task, rollouts):
        return [RewardResult(error="broken") if len(rollouts) > 2 else RewardResult(1.0)] * len(
            rollouts
        )


def test_a_beginning_without_scored_completions_has_no_cut():
    group = sample(PrefixValue(GroupSampler(1), AtFractions((0.0,)), 3), script(coin), BrokenEnv())
    assert group.rollouts[0].step_values["prefix_cut"] == (0.0,) * 4


def test_games_and_impossible_cuts_are_errors():
    rollout = Rollout(seat=Seat(0, 0, 2)).append_turn("Q", Response(("a",), (0.0,), ("Q",), "a"))

    async def game(task, env, actor):
        return replace(await GroupSampler(1)(task, env, actor), rollouts=(rollout,))

    with pytest.raises(ConfigError, match="play against one another"):
        sample(PrefixValue(game, AtFractions((0.0,))), script(coin))
    with pytest.raises(ConfigError, match=r"item 9 .* 4 items\. Allowed: a cut after fewer than 4"):
        sample(PrefixValue(GroupSampler(1), lambda rollout, actor: [9]), script(coin))


def test_step_values_of_another_component_are_kept():
    rollout = Rollout(step_values={"reward": (1.0,)}).append_turn("Q", Response((1, 2), (0.0,) * 2))
    values = with_values(rollout, {1: 0.25}).step_values
    assert values == {"reward": (1.0,), "prefix_value": (0.0, 0.25), "prefix_cut": (0.0, 1.0)}


def test_a_flow_continues_from_the_latents_of_a_beginning(tmp_path):
    policy = Flow(tiny_flow.save_model(tmp_path)).build()
    sampler = PrefixValue(GroupSampler(2), AtFractions((0.5,)), 3)
    task = replace(TASK, prompt=tiny_flow.PROMPTS[0])
    actor = policy.actor(3)
    env = ImageGeneration((RewardTerm("red", tiny_flow.redness),))
    group = run_coroutine(sampler(task, env, actor))
    steps = group.rollouts[0].length
    for rollout in group.rollouts:
        cuts = rollout.step_values["prefix_cut"]
        assert [i for i, cut in enumerate(cuts) if cut] == [steps // 2]
        assert rollout.step_values["prefix_value"][steps // 2] != 0.0
    completed = 2 * 3 * (steps - steps // 2)
    assert sum(actor.generated_tokens.values()) == 2 * steps + completed
