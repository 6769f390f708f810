"""Generation and training use one distribution: the ratio of an on-policy answer is 1."""

from math import exp

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.core.types import Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.util.event_loop import run_coroutine
from tests.helpers.fast_cases import fast_cases
from tests.helpers.tiny_lm import (
    CONTEXT,
    FAMILIES,
    PROMPTS,
    answer_batch,
    batch_of,
    build_cached,
    generate,
    two_turn_rollouts,
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
def test_evaluated_logp_matches_generation(folders, family, sampling):
    policy = build_cached(CausalLM(folders[family], max_new_tokens=12, sampling=sampling))
    batch = answer_batch(policy)
    assert len(set(batch.inputs["start"].tolist())) == 3
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


@pytest.mark.usefixtures("bfloat16_here")
@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("family", FAMILIES)
def test_evaluated_logp_matches_generation_in_bfloat16(folders, family, lora):
    policy = build_cached(CausalLM(folders[family], max_new_tokens=12, dtype="bfloat16", lora=lora))
    batch = answer_batch(policy)
    off = (policy.signals(batch).logp - batch.old_logp)[batch.mask].abs()
    assert off.mean() < 0.1
    assert batch.old_logp[batch.mask].std() > 0.5  # not constant


@pytest.mark.parametrize("family", fast_cases(2, FAMILIES))
def test_evaluated_logp_matches_in_a_second_turn(folders, family):
    policy = build_cached(CausalLM(folders[family], max_new_tokens=12))
    batch = batch_of(policy, two_turn_rollouts(policy))
    logp = policy.signals(batch).logp
    assert 0 < (~batch.mask).sum() < batch.mask.numel()
    torch.testing.assert_close(logp, batch.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_end_early_do_not_change_the_others(folders, family):
    policy = build_cached(
        CausalLM(folders[family], max_new_tokens=16, stop_strings=tuple("abcdefghijklmnop012345"))
    )
    batch = answer_batch(policy, attempts=8)
    assert len(set(batch.lengths.tolist())) > 5
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_row_at_the_context_limit_does_not_change_the_others(folders, family):
    policy = build_cached(CausalLM(folders[family], max_new_tokens=16))
    short = PROMPTS * 2  # with one long row, too few rows end at once to be removed
    *batched, long = generate(policy, [*short, "x" * (CONTEXT - 2)], attempts=1)
    assert len(long[0].items) <= 2
    alone = generate(policy, short, attempts=1)
    assert [actions[0].items for actions in batched] == [actions[0].items for actions in alone]


@pytest.mark.parametrize("family", FAMILIES)
def test_logp_matches_transformers_on_the_single_row(folders, family):
    sampling = SAMPLINGS["all"]
    policy = build_cached(CausalLM(folders[family], max_new_tokens=12, sampling=sampling))
    model = AutoModelForCausalLM.from_pretrained(folders[family]).eval()
    action = generate(policy, PROMPTS[:3])[2][0]
    with torch.no_grad():
        logits = model(torch.tensor([[*action.observation, *action.items]])).logits[0]
    first = len(action.observation) - 1
    for offset, (token, logp) in enumerate(zip(action.items, action.logp, strict=True)):
        allowed = by_definition(logits[first + offset].tolist(), sampling)
        assert logp == pytest.approx(torch.tensor(allowed[token]).log().item(), abs=2e-5)


def by_definition(logits: list[float], sampling: Sampling) -> dict[int, float]:
    """Probability of every allowed token, most likely first: one truncation after another."""
    weight = {i: exp(x / sampling.temperature) for i, x in enumerate(logits)}
    order = sorted(weight, key=lambda i: -weight[i])[: sampling.top_k]
    total = sum(weight[i] for i in order)
    reached = 0.0
    allowed = []
    for i in order:
        if reached < sampling.top_p:
            allowed.append(i)
        reached += weight[i] / total
    allowed = [i for i in allowed if weight[i] >= sampling.min_p * weight[order[0]]]
    total = sum(weight[i] for i in allowed)
    return {i: weight[i] / total for i in allowed}


def test_ratio_differs_from_one_after_a_weight_change(folders):
    policy = CausalLM(folders["llama"], max_new_tokens=12).build()
    batch = answer_batch(policy)
    with torch.no_grad():
        policy.parameters()[0].mul_(1.1)
    assert (policy.signals(batch).logp - batch.old_logp).abs().max() > 0.01


def test_unsampled_text_is_as_likely_as_the_same_generated_tokens(llama):
    policy = build_cached(llama)
    generated = generate(policy, PROMPTS[1:2], attempts=1)[0][0]
    assert generated.finish_reason == "end"
    unsampled = run_coroutine(
        policy.actor(0).append_unsampled(Rollout(), PROMPTS[1], generated.text)
    )
    assert unsampled.items == generated.items
    logp = policy.signals(batch_of(policy, [Rollout(((PROMPTS[1], unsampled),))])).logp[0]
    assert logp.tolist() == pytest.approx(generated.logp, abs=2e-5)
