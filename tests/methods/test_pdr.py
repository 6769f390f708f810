"""PDR: its loss by hand, its sampler, and the gain of a plurality of drafts."""

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import factorial, prod

import pytest
import torch

from grupo.core.batch import Signals
from grupo.core.types import Response, RewardResult
from grupo.methods.pdr import CorrectRolloutNLL, pdr
from grupo.rollouts.samplers import (
    DistilledDrafts,
    GroupSampler,
    LikeliestDrafts,
    RandomDrafts,
    SummaryOfDrafts,
)
from grupo.testing.batches import make_batch
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts


def losses(rewards, logp, loss, coef=1.0):
    batch = make_batch(group=[0] * len(rewards), reward=rewards, length=[2] * len(rewards))
    pi = Signals(logp=torch.tensor(logp, dtype=torch.float64))
    return (pdr().aggregation(batch) * (coef * loss)(pi, batch)).sum().item()


def test_the_sft_term_is_the_mean_nll_of_the_correct_rollouts():
    one_correct = [[-1.0, -3.0], [-5.0, -5.0], [-5.0, -5.0], [-5.0, -5.0]]
    assert losses([1.0, 0.0, 0.0, 0.0], one_correct, CorrectRolloutNLL()) == pytest.approx(2.0)
    assert losses([1.0, 0.0, 0.0, 0.0], one_correct, CorrectRolloutNLL(), 0.1) == pytest.approx(0.2)
    two_correct = [[-1.0, -3.0], [-4.0, -4.0]]
    assert losses([1.0, 1.0], two_correct, CorrectRolloutNLL()) == pytest.approx(3.0)
    assert losses([0.0, 0.0], two_correct, CorrectRolloutNLL()) == 0.0


def test_the_policy_term_is_that_of_cispo():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], advantage=[1.0, -1.0], logp=-1.0)
    pi = Signals(logp=torch.tensor([[-0.5], [-3.0]], dtype=torch.float64))
    loss = pdr(sft_coef=0.0).loss(pi, batch).flatten().tolist()
    # ratios e^0.5, capped at 1.2, and e^-2, which has no lower bound
    assert loss == pytest.approx([1.2 * 0.5, -3.0 * 0.1353353])


@dataclass
class Scripted:
    """Actor that gives the texts of `drafts` in turn, then repeats the prompt that it reads."""

    drafts: list
    forks: tuple = ()

    async def __call__(self, rollout, observation):
        if "draft" in self.forks:
            text = self.drafts[self.forks[-1]]
            return Response(tuple(text), (-float(ord(text[0])),) * len(text), (observation,), text)
        return Response((1,), (0.0,), (observation,), observation)

    def fork(self, *label):
        return replace(self, forks=label)

    def rng(self, *label):
        return script(dice).rng(*label)

    def truncate(self, rollout, num_items):
        ((observation, response),) = rollout.turns
        text = response.text[:num_items]
        return replace(
            rollout, turns=((observation, replace(response, items=tuple(text), text=text)),)
        )


class Plurality:
    """Rewards the plurality of the letters in an answer, if it is "r"; ties are drawn."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(self.chance(rollout.text)) for rollout in rollouts]

    def chance(self, text):
        counts = Counter(text.partition(":")[2].split())
        best = [letter for letter, count in counts.items() if count == max(counts.values())]
        return best.count("r") / len(best)


async def plurality_reward(drafts):
    sampler = DistilledDrafts(
        1,
        drafts=len(drafts),
        distill=RandomDrafts(len(drafts), " "),
        share=1.0,
        request=" :{workspace}",
    )
    return (await sampler(TASK, Plurality(), Scripted(list(drafts)))).rewards[0]


def test_a_refiner_that_copies_the_plurality_of_five_drafts_solves_more_than_one_draft():
    chances = {"r": 0.4} | dict.fromkeys("abcdef", 0.1)  # six wrong answers

    async def solved():
        total = 0.0
        for drafts in combinations_with_replacement(chances, 5):
            ways = factorial(5) / prod(map(factorial, Counter(drafts).values()))
            chance = ways * prod(chances[letter] for letter in drafts)
            total += chance * await plurality_reward(drafts)
        return total

    assert asyncio.run(solved()) == pytest.approx(0.5958, abs=5e-5)
    assert asyncio.run(plurality_reward("r")) == 1.0  # one draft is right with 0.4


def test_a_workspace_is_cut_to_its_tokens_and_shared_by_the_group():
    for distill, expected in (
        (RandomDrafts(3, "/"), "ccc/a"),
        (LikeliestDrafts(2, "/"), "aaaa"),  # of "aaaa" and "bb"; the first letters are likelier
    ):
        sampler = DistilledDrafts(
            3, drafts=3, distill=distill, max_tokens=4, share=1.0, request=" {workspace}"
        )
        group = asyncio.run(sampler(TASK, Once(), Scripted(["ccc", "aaaa", "bb"])))
        assert texts(group) == [f"Q {expected}"] * 3
        assert all(len(rollout.turns) == 1 for rollout in group.rollouts)  # no draft is trained


def test_half_of_the_groups_have_a_workspace_and_the_others_are_ordinary():
    sampler = DistilledDrafts(2, drafts=2, max_tokens=3)
    num_workspaces = 0
    for key in range(100):
        actor = replace(script(dice), key=key)
        group = asyncio.run(sampler(TASK, Once(), actor))
        has_workspace = group.rollouts[0].reward_terms["has_workspace"]
        num_workspaces += has_workspace
        plain = asyncio.run(GroupSampler(2)(TASK, Once(), replace(script(dice), key=key)))
        assert (texts(group) == texts(plain)) or has_workspace
        assert [streams(r) for r in group.rollouts] == [streams(r) for r in plain.rollouts]
    assert num_workspaces / 100 == pytest.approx(0.5, abs=0.16)


def test_a_summary_has_at_most_the_tokens_of_the_workspace():
    actor = script(lambda context, key: "x")
    actor = replace(actor, max_new_tokens=5)
    sampler = DistilledDrafts(1, drafts=2, distill=SummaryOfDrafts(), max_tokens=3, share=1.0)
    asyncio.run(sampler(TASK, Once(), actor))
    assert [len(text) for _, text in actor.log] == [5, 5, 3, 5]
    assert "Drafts:\nxxxxx\nxxxxx" in actor.log[2][0]
    assert "drafts:\nxxx\n\nAnswer." in actor.log[3][0]
