"""Evolved: parents are drawn from the archive, shown in the prompt and recorded."""

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from grupo.core.elites import Axis, Elites
from grupo.core.extract_answer import AfterMarker
from grupo.core.requires import Requires
from grupo.core.types import Response, Rollout
from grupo.rollouts.samplers import Evolved, GroupSampler
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, dice, script

LENGTH = Axis("length", 0.0, 4.0, 4)


def elite(text: str, reward: float, rollout_id: str, length: float = 0.0) -> Rollout:
    turns = (("Q", Response(tuple(text), (-1.0,) * len(text), text=text)),)
    return Rollout(turns, reward, {"length": length}, id=rollout_id)


ARCHIVE = (elite("bb", 2.5, "1.0", 1), elite("a", 0.5, "1.3", 2), elite("ccc", 1 / 3, "2.1", 3))


def sample(sampler: Evolved, *replays: Rollout):
    actor = script(dice).fork(0)
    group = asyncio.run(sampler(replace(TASK, replays=replays), Once(), actor))
    return [context for context, _ in actor.log], group


def test_a_prompt_shows_the_parents_from_the_lowest_score_on():
    sampler = Evolved(
        GroupSampler(2), 3, (LENGTH,), score_text="|", parent_text=":", instruction="!"
    )
    prompts, group = sample(sampler, *ARCHIVE)
    assert prompts == ["Q|0.333333:ccc|0.5:a|2.5:bb!"] * 2
    assert [r.parents for r in group.rollouts] == [("2.1", "1.3", "1.0")] * 2
    assert group.task.prompt == "Q"


def test_a_prompt_without_scores_shows_what_was_extracted():
    sampler = Evolved(
        GroupSampler(1),
        cells=(LENGTH,),
        extract=AfterMarker("="),
        score_text="",
        parent_text="#",
        instruction="",
    )
    replays = (elite("x=7", 1.0, "1.0", 1), elite("bare", 2.0, "1.1", 2))
    prompts, _ = sample(sampler, *replays)
    assert prompts == ["Q#7#bare"]


def test_an_empty_archive_shows_no_parents():
    for replays in ((), (elite("a", 0.0, "1.0"),)):  # a reward at the threshold is no elite
        prompts, group = sample(Evolved(GroupSampler(2)), *replays)
        assert prompts == ["Q"] * 2
        assert [r.parents for r in group.rollouts] == [(), ()]


def test_parents_are_drawn_without_replacement_and_with_equal_probabilities():
    sampler, task = Evolved(GroupSampler(1), 2, (LENGTH,)), replace(TASK, replays=ARCHIVE)
    pairs = Counter(
        tuple(parent.id for parent in sampler.draw_parents(task, Random(seed)))
        for seed in range(600)
    )
    assert set(pairs) == {("2.1", "1.3"), ("2.1", "1.0"), ("1.3", "1.0")}
    assert min(pairs.values()) > 150  # 200 are expected; 150 are 4.3 standard deviations below


def test_rollouts_that_other_rules_keep_are_no_parents():
    replays = (elite("a", 1.0, "1.0"), elite("b", 2.0, "1.1"))  # one cell: the second is the elite
    _, group = sample(Evolved(GroupSampler(1)), *replays)
    assert group.rollouts[0].parents == ("1.1",)


def test_the_archive_and_the_terms_of_its_axes_are_declared():
    sampler = Evolved(GroupSampler(8), 2, (LENGTH,), threshold=0.5)
    rule = Elites((LENGTH,), 0.5)
    assert sampler.requires == Requires(replay_rules=(rule,), reward_terms=["length"])
    assert sampler.group_size == 8


def test_an_archive_beyond_the_bound_is_refused():
    with pytest.raises(ConfigError, match="at most 32,768 cells"):
        Evolved(GroupSampler(8), cells=(Axis("length", 0.0, 1.0, 100_000),))
