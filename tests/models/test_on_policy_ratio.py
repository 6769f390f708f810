"""What was sampled and what is trained are one distribution: the ratio of a fresh answer is 1."""

import asyncio
from math import exp

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.core.types import Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import Lora
from tests.helpers.tiny_lm import (
    CONTEXT,
    FAMILIES,
    PROMPTS,
    answers,
    batch_of,
    built,
    spoken,
    two_turns,
)

SAMPLINGS = {
    "plain": Sampling(),
    "temperature": Sampling(temperature=0.7),
    "top_p": Sampling(top_p=0.8),
    "top_k": Sampling(top_k=12),
    "min_p": Sampling(min_p=0.05),
    "all": Sampling(temperature=1.3, top_p=0.9, top_k=20, min_p=0.02),
}


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_log_probabilities_are_those_evaluated_again(folders, family, sampling):
    policy = built(CausalLM(folders[family], max_new_tokens=12, sampling=sampling))
    batch = answers(policy)
    assert len(set(batch.inputs["start"].tolist())) == 3
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


@pytest.mark.usefixtures("bfloat16_here")
@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("family", FAMILIES)
def test_in_bfloat16_they_are_so_to_its_rounding(folders, family, lora):
    policy = built(CausalLM(folders[family], max_new_tokens=12, dtype="bfloat16", lora=lora))
    batch = answers(policy)
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask].abs()
    assert off.mean() < 0.1
    assert batch.old_logp[batch.mask].std() > 0.5  # not a number that all tokens share


@pytest.mark.parametrize("family", FAMILIES)
def test_actions_of_a_second_turn_are_evaluated_behind_what_the_world_said(folders, family):
    policy = built(CausalLM(folders[family], max_new_tokens=12))
    batch = batch_of(policy, two_turns(policy))
    logp = policy.signals(batch).logp
    assert 0 < (~batch.mask).sum() < batch.mask.numel()
    torch.testing.assert_close(logp, batch.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_leave_early_leave_the_others_as_they_are(folders, family):
    policy = built(
        CausalLM(folders[family], max_new_tokens=16, stop_strings=tuple("abcdefghijklmnop012345"))
    )
    batch = answers(policy, attempts=8)
    assert len(set(batch.lengths.tolist())) > 5
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_at_the_end_of_the_context_leaves_the_others_as_they_are(folders, family):
    policy = built(CausalLM(folders[family], max_new_tokens=16))
    short = PROMPTS * 2  # with one long: too few are over at once to leave
    *among, long = spoken(policy, [*short, "x" * (CONTEXT - 2)], attempts=1)
    assert len(long[0].items) <= 2
    alone = spoken(policy, short, attempts=1)
    assert [said[0].items for said in among] == [said[0].items for said in alone]


@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_what_transformers_says_of_the_row_alone(folders, family):
    sampling = SAMPLINGS["all"]
    policy = built(CausalLM(folders[family], max_new_tokens=12, sampling=sampling))
    model = AutoModelForCausalLM.from_pretrained(folders[family]).eval()
    action = spoken(policy, PROMPTS[:3])[2][0]
    with torch.no_grad():
        logits = model(torch.tensor([[*action.observation, *action.items]])).logits[0]
    first = len(action.observation) - 1
    for place, (token, logp) in enumerate(zip(action.items, action.logp, strict=True)):
        kept = by_definition(logits[first + place].tolist(), sampling)
        assert logp == pytest.approx(torch.tensor(kept[token]).log().item(), abs=2e-5)


def by_definition(logits: list[float], sampling: Sampling) -> dict[int, float]:
    """Probability of every token that is kept, likeliest first: one cut after another."""
    weight = {i: exp(x / sampling.temperature) for i, x in enumerate(logits)}
    order = sorted(weight, key=lambda i: -weight[i])[: sampling.top_k]
    whole, reached, kept = sum(weight[i] for i in order), 0.0, []
    for i in order:
        if reached < sampling.top_p:
            kept.append(i)
        reached += weight[i] / whole
    kept = [i for i in kept if weight[i] >= sampling.min_p * weight[order[0]]]
    whole = sum(weight[i] for i in kept)
    return {i: weight[i] / whole for i in kept}


def test_the_ratio_leaves_one_when_the_policy_moves(folders):
    policy = CausalLM(folders["llama"], max_new_tokens=12).build()
    batch = answers(policy)
    with torch.no_grad():
        policy.parameters()[0].mul_(1.1)
    assert (policy.signals(batch).logp - batch.old_logp).abs().max() > 0.01


def test_a_recited_text_is_as_likely_as_the_same_tokens_drawn(llama):
    policy = built(llama)
    drawn = spoken(policy, PROMPTS[1:2], attempts=1)[0][0]
    assert drawn.finish_reason == "end"
    recited = asyncio.run(policy.actor(0).append_unsampled(Rollout(), PROMPTS[1], drawn.text))
    assert recited.items == drawn.items
    logp = policy.signals(batch_of(policy, [Rollout(((PROMPTS[1], recited),))])).logp[0]
    assert logp.tolist() == pytest.approx(drawn.logp, abs=2e-5)
