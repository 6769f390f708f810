"""Rollouts that are pruned early."""

import asyncio
import math
from dataclasses import replace

import pytest

from grupo.core.schedules import resolve_schedules
from grupo.core.types import PRUNED_BY_SAMPLER
from grupo.rollouts.samplers import BetaBins, EarlyPruning
from grupo.rollouts.samplers.pruning import BetaBin, balanced_subset
from grupo.training.collect.failed_rollouts import drop_failed_rollouts
from grupo.training.update.collate import collate
from grupo.training.update.metrics import _count_returned
from tests.helpers.scripted_actor import TASK, Once, Script, dice, texts

# 1/10 for scores below one half, 9/10 for the others
POSTERIOR = BetaBins((BetaBin(0.0, 8.0), BetaBin(8.0, 8.0)))
SMALL = EarlyPruning(
    group_size=8,
    keep_fraction=0.5,
    prune_at=2,
    max_new_tokens_after=9,
    always_keep=1,
    posterior=POSTERIOR,
)


class ActorWithQualityHead(Script):
    """Script whose head predicts high quality for rollouts that begin with a letter before n."""

    async def predict_head(self, rollout, name):
        assert name == "quality"
        return 2.0 if rollout.text[0] < "n" else -2.0


def repeat_first_letters(letters: str):
    """An actor whose successive rollouts repeat the next of the letters five times."""
    first_letters = iter(letters)

    def next_letter(context, key):
        text = context[1:]
        if not text:
            return next(first_letters)
        return "." if len(text) == 5 else text[0]

    return ActorWithQualityHead(next_letter, [])


def sample(sampler, actor, task=TASK):
    return asyncio.run(sampler(task, Once(), actor))


def test_posterior_is_the_mean_of_the_bin_of_the_score():
    assert BetaBin(3.0, 4.0).posterior_mean == pytest.approx(4 / 6)
    assert BetaBin(0.0, 0.0).posterior_mean == 0.5
    assert (POSTERIOR(0.0), POSTERIOR(0.49), POSTERIOR(0.5), POSTERIOR(1.0)) == (0.1, 0.1, 0.9, 0.9)


def test_balanced_subset_has_about_as_many_correct_as_incorrect_rollouts():
    p = dict(enumerate([0.9, 0.8, 0.7, 0.2, 0.15, 0.1]))
    kept = balanced_subset(p, 4)
    assert kept == {0, 1, 4, 5}
    assert sum(p[i] for i in kept) == pytest.approx(1.95)  # the best four would be 2.6, not 2
    assert balanced_subset(dict(enumerate([0.3, 0.2, 0.1])), 2) == {0, 1}  # 0.5 is nearest to 1
    assert balanced_subset(p, 6) == set(p)
    assert balanced_subset({}, 0) == set()


def test_half_of_the_rollouts_that_reach_the_pruning_length_are_pruned():
    group = sample(SMALL, repeat_first_letters("azbcydef"))
    # a is always kept; of b to f, at 0.9 each, and y, z, at 0.1, four are kept: two of each
    assert texts(group) == [*(x * 5 + "." for x in "azyef"), "bb", "cc", "dd"]
    assert [r.error for r in group.rollouts] == [""] * 5 + [PRUNED_BY_SAMPLER] * 3
    assert [r.reward for r in group.rollouts[:5]] == [6.0] * 5
    assert all(math.isnan(r.reward) for r in group.rollouts[5:])
    assert drop_failed_rollouts(group).rollouts == group.rollouts[:5]


def test_rollouts_that_end_before_the_pruning_length_are_kept_without_a_score():
    short_lengths = {"a": 2, "z": 2}
    first_letters = iter("azbcyxde")

    def next_letter(context, key):
        text = context[1:]
        if not text:
            return next(first_letters)
        is_last = len(text) + 1 == short_lengths.get(text[:1], 6)
        return "." if is_last else text[0]

    group = sample(SMALL, ActorWithQualityHead(next_letter, []))
    # a and z end with their second letter; three of the other six continue
    assert texts(group)[:2] == ["a.", "z."]
    assert [r.reward_terms["quality"] for r in group.rollouts[:2]] == [-1.0, -1.0]
    assert [r.error for r in group.rollouts] == [""] * 5 + [PRUNED_BY_SAMPLER] * 3


def test_quality_and_score_position_are_added_to_the_rollouts():
    group = sample(SMALL, repeat_first_letters("azbcydef"))
    high, low = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))
    assert [r.reward_terms["quality"] for r in group.rollouts[:3]] == pytest.approx(
        [high, low, low]
    )
    batch = collate([drop_failed_rollouts(group)], lambda rows: {})
    assert batch.signals["step/score_position"][0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert batch.mask.all()


def test_tokens_of_pruned_rollouts_are_counted_once():
    actor = repeat_first_letters("azbcydef")
    group = sample(SMALL, actor)
    assert _count_returned(group) == sum(len(text) for _, text in actor.log) == 8 * 2 + 5 * 4


def test_keep_fraction_of_one_prunes_no_rollout():
    group = sample(replace(SMALL, keep_fraction=1.0), repeat_first_letters("azbcydef"))
    assert texts(group) == [x * 5 + "." for x in "azbcydef"]


def test_random_streams_do_not_depend_on_the_pruned_rollouts():
    def rollouts_by_text(sampler):
        actor = ActorWithQualityHead(dice, []).fork(1)
        return {r.text: r for r in sample(sampler, actor).rollouts if not r.error}

    kept = rollouts_by_text(SMALL)
    unpruned = rollouts_by_text(replace(SMALL, keep_fraction=1.0))
    assert len(unpruned) == 8 > len(kept)
    assert kept.items() <= unpruned.items()


def test_posterior_follows_the_measured_counts_with_decay():
    posterior = BetaBins.from_history(2, decay=0.5)
    assert repr(posterior) == "BetaBins.from_history(2, 0.5)"
    measured = {
        "value_bins/correct/0": [1.0, 0.0],
        "value_bins/count/0": [4.0, 0.0],
        "value_bins/correct/1": [0.0, 3.0],
        "value_bins/count/1": [0.0, 3.0],
    }
    resolved = resolve_schedules(posterior, 0.5, measured)
    assert (resolved(0.2), resolved(0.8)) == ((0.5 + 1) / (2 + 2), (3 + 1) / (3 + 2))
    prior = resolve_schedules(posterior, 0.0)
    assert (prior(0.2), prior(0.8)) == (0.5, 0.5)
