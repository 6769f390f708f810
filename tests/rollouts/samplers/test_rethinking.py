"""Forced rethinking: triggers behind finished answers, and which continuations are kept."""

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from grupo.rollouts.samplers import ForcedRethinking, GroupSampler, RandomTrigger
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script, texts

TRIGGER = RandomTrigger((("Wait ", 1.0),), "", "")
ALWAYS = ForcedRethinking(
    GroupSampler(3), TRIGGER, chance=1.0, cut_chance=0.0, max_per_group=2, min_tokens=1
)


def corrected(context, key):
    """`=no.` at first, `yes.` behind a trigger."""
    before, trigger, after = context[1:].partition("Wait ")
    return "yes."[len(after)] if trigger else "=no."[len(before)]


def is_right(text):
    return text.endswith("yes.")


def sample(sampler, next_letter=corrected, reward_fn=is_right, **fields):
    actor = replace(script(next_letter), **fields)
    return asyncio.run(sampler(TASK, Once(reward_fn), actor))


def test_correct_continuations_replace_their_origin_up_to_a_number_per_group():
    group = sample(ALWAYS)
    assert texts(group) == ["=noWait yes.", "=noWait yes.", "=no."]
    assert group.rewards == (1.0, 1.0, 0.0)
    assert [r.reward_terms["rethought"] for r in group.rollouts] == [1.0, 1.0, 0.0]


def test_wrong_continuations_are_dropped():
    group = sample(ALWAYS, reward_fn=lambda text: 0.0)
    assert texts(group) == ["=no."] * 3


@pytest.mark.parametrize(("shortest", "longest", "kept"), [(4, 4, 2), (5, 9, 0), (1, 3, 0)])
def test_continuations_have_a_length_within_bounds(shortest, longest, kept):
    group = sample(replace(ALWAYS, min_tokens=shortest, max_tokens=longest))
    assert sum(group.rewards) == kept  # `yes.` has 4 letters


def test_a_cut_answer_ends_before_the_last_occurrence_of_a_text():
    group = sample(replace(ALWAYS, cut_chance=1.0, cut_before=("=", "no")))
    assert texts(group)[0] == "=Wait yes."  # the first item stays
    group = sample(replace(ALWAYS, cut_chance=1.0, cut_before=("o",)))
    assert texts(group)[0] == "=nWait yes."
    group = sample(replace(ALWAYS, cut_chance=1.0, cut_before=("x",)))
    assert texts(group)[0] == "=noWait yes."


def test_the_trigger_is_trained_with_the_log_probability_of_the_policy():
    batch = collate([sample(ALWAYS)], lambda rows: {})
    assert batch.old_logp[0, :12].tolist() == [-1.0] * 3 + [-2.0] * 5 + [-1.0] * 4
    assert batch.lengths.tolist() == [12, 12, 4]


def test_without_a_chance_the_group_is_the_inner_one():
    never = sample(replace(ALWAYS, chance=0.0))
    assert texts(never) == ["=no."] * 3


def test_truncated_answers_are_not_continued():
    group = sample(ALWAYS, lambda context, key: "n", lambda text: 1.0, max_new_tokens=3)
    assert texts(group) == ["nnn"] * 3


def test_an_answer_that_rethinks_by_itself_is_counted_as_one():
    group = sample(replace(ALWAYS, chance=0.0), lambda context, key: "Wait."[len(context) - 1])
    assert [r.reward_terms["rethought"] for r in group.rollouts] == [1.0] * 3


def test_half_of_the_triggers_depend_on_the_reward():
    rng = Random(0)
    counts = Counter(RandomTrigger()(False, rng) for _ in range(4000))
    shares = [counts[text] / 4000 for text in ("\n\nWait", "\n\nWait, does it seem right?")]
    assert shares == pytest.approx([0.2, 0.3], abs=0.03)
    assert counts["\n\nWait, there might be a mistake"] / 4000 == pytest.approx(0.5, abs=0.03)
    assert "check" in {RandomTrigger()(True, rng).split()[-1] for _ in range(50)}


def test_a_trigger_needs_a_text():
    with pytest.raises(ConfigError, match="texts"):
        RandomTrigger(())
