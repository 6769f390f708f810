"""Corrective hints: cuts, hints, kept rollouts and generated tokens."""

import asyncio

import pytest

from grupo.rollouts.samplers import CorrectiveHints, GroupSampler, TextFlaws
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script

HINT = "|"  # one letter
FLAW = TextFlaws((("xx", HINT),))


def next_letter(good, length):
    """Answers `a…axx.` by itself; behind the hint `good` and the end."""

    def letter(context, key):
        if HINT in context:
            written = context.rpartition(HINT)[2]
            return (good + ".")[len(written)] if len(written) <= len(good) else "."
        written = context.removeprefix("Q")
        return ("a" * length + "xx.")[len(written)]

    return letter


def run(sampler, env, actor):
    return asyncio.run(sampler(TASK, env, actor))


def corrected_group(good="b", length=60, **arguments):
    actor = script(next_letter(good, length))
    sampler = CorrectiveHints(GroupSampler(2), find_flaw=FLAW, **arguments)
    env = Once(lambda text: "b" in text)
    return run(sampler, env, actor), actor.log


def test_a_wrong_rollout_is_cut_before_its_flaw_and_goes_on_behind_the_hint():
    group, _ = corrected_group()
    *wrong, first, second = group.rollouts
    assert [rollout.text for rollout in wrong] == ["a" * 60 + "xx."] * 2
    assert first.text == second.text == "a" * 60 + HINT + "b."
    assert [response.sampled for _, response in first.turns] == [True, False, True]
    assert (first.source, first.reward) == ("corrected", 1.0)


def test_hints_are_trained_on_and_their_share_is_a_reward_term():
    group, _ = corrected_group()
    assert [rollout.reward_terms["hint_share"] for rollout in group.rollouts] == pytest.approx(
        [0.0, 0.0, 1 / 63, 1 / 63]
    )
    assert all(response.in_loss for _, response in group.rollouts[2].turns)


def test_rollouts_with_too_many_hint_tokens_are_left_out():
    group, _ = corrected_group(length=20)  # 1 / 23 = 0.043
    assert len(group.rollouts) == 2
    kept, _ = corrected_group(length=20, max_hint_share=0.05)
    assert len(kept.rollouts) == 4
    # 2.6 % of 40 tokens are 1.04: one hint token is fewer, of 38 tokens it is 2.63 %
    assert len(corrected_group(length=37)[0].rollouts) == 4
    assert len(corrected_group(length=35)[0].rollouts) == 2


def test_a_rollout_that_stays_wrong_has_at_most_max_rounds_hints_and_is_left_out():
    group, log = corrected_group(good="cxx", max_rounds=3)
    assert len(group.rollouts) == 2
    assert len(log) == 2 + 2 * 3


def test_a_correct_rollout_and_one_without_a_known_flaw_get_no_hint():
    actor = script(lambda context, key: "." if context.endswith("b") else "b")
    sampler = CorrectiveHints(GroupSampler(2), find_flaw=FLAW)
    assert len(run(sampler, Once(lambda text: 1.0), actor).rollouts) == 2
    assert len(run(sampler, Once(lambda text: 0.0), actor).rollouts) == 2
    assert len(actor.log) == 4


def test_every_generated_token_of_all_rounds_is_in_the_log_once():
    _, log = corrected_group()
    assert [len(text) for _, text in log] == [63, 63, 2, 2]


def test_rules_without_a_pair_are_refused():
    with pytest.raises(ConfigError, match="rules"):
        TextFlaws(())
