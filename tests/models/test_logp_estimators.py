"""Log-probability estimators of masked diffusion models."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.signal_models import scatter_to_batch
from grupo.util.rng import uniform
from tests.helpers.masked_rollouts import answers, batch, expected_logp


def test_autoregressive_estimate_masks_each_token_and_all_after_it(bert):
    policy = replace(bert, logp_estimator=AutoregressiveEstimator()).build()
    response = answers(policy)[0]
    prompt = list(response.observation)
    width = len(prompt) + 7
    for i, token in enumerate(response.items):
        expected = expected_logp(policy, prompt + list(response.items[:i]), width)[len(prompt) + i]
        assert response.logp[i] == pytest.approx(expected[token].item(), abs=1e-5)
        noise = uniform(torch.tensor([response.rng_key]), torch.tensor([len(prompt) + i]))
        assert Sampling().sample(expected[None], noise)[0].item() == token


def test_autoregressive_probabilities_of_all_answers_sum_to_one(bert):
    policy = replace(
        bert, logp_estimator=AutoregressiveEstimator(), max_new_tokens=3, sampling=Sampling(top_k=2)
    ).build()
    a, b = 5, 6  # any two tokens; the vocabulary is truncated to them
    bias = policy.hf_model.get_output_embeddings().bias
    with torch.no_grad():
        bias[[a, b]] += 1000.0
    responses = [
        Response(items, (0.0,) * 3, policy.chat_tokenizer.encode_observation(Rollout(), "Hi"))
        for items in product((a, b), repeat=3)
    ]
    logp = policy.signals(batch(policy, responses)).logp.sum(1)
    assert logp.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_coupled_estimate_averages_a_full_and_a_weighted_partial_view(bert):
    policy = bert.build()
    response = answers(policy)[0]
    prompt, items = list(response.observation), list(response.items)
    inputs = batch(policy, [response]).inputs
    start = len(prompt)
    (u,), in_first = CoupledEstimator().draw_masks(
        inputs["mask_key"][:, start], torch.tensor([start]), start + 7
    )
    in_first = in_first[0, start : start + len(items)].tolist()
    assert 0.2 <= u <= 0.8
    model, mask = policy.hf_model, policy.denoiser.mask_token
    tail = [mask] * (7 - len(items))

    def view_logp(masked):
        text = [mask if m else t for m, t in zip(masked, items, strict=True)]
        logits = model(torch.tensor([prompt + text + tail])).logits[0].detach()
        logits[:, mask] = -torch.inf
        return logits.log_softmax(-1)[start:]

    full = view_logp([True] * len(items))
    first, second = view_logp(in_first), view_logp([not m for m in in_first])
    for i, token in enumerate(items):
        partial = first[i, token] / u if in_first[i] else second[i, token] / (1 - u)
        assert response.logp[i] == pytest.approx((full[i, token] + partial).item() / 2, abs=1e-4)


def test_coupled_weights_match_the_paper():
    # u = 1/2, l_0 = -2, partial -1: (-2 + 2 (-1)) / 2 = -2
    inputs = {
        "token": torch.tensor([[9, 9]]),
        "begin": torch.tensor([[0, 0]]),
        "end": torch.tensor([[2, 2]]),
        "canvas_end": torch.tensor([[2, 2]]),
        "mask_key": torch.tensor([[3, 3]]),
    }
    row, position = torch.tensor([0, 0]), torch.tensor([0, 1])
    views = CoupledEstimator(0.5, 0.5)(inputs, row, position, mask_token=1)
    values = torch.tensor([-2.0, -1.0, -2.0, -1.0])
    assert views.average_views("logp", values).tolist() == [-2.0, -2.0]
    assert views.average_views("entropy", -values).tolist() == [1.5, 1.5]


def test_coupled_masks_are_complements():
    keys = torch.arange(500)
    ratio, in_first = CoupledEstimator().draw_masks(keys, torch.full((500,), 2), 34)
    assert ratio.min() > 0.2
    assert ratio.max() < 0.8
    assert (in_first[:, 2:].double().mean(1) - ratio).abs().mean() < 0.08  # deviation 0.09 x 0.8
    inputs = {
        "token": torch.full((500, 34), 9),
        "begin": torch.full((500, 34), 2),
        "end": torch.full((500, 34), 30),
        "canvas_end": torch.full((500, 34), 34),
        "mask_key": keys[:, None].expand(-1, 34),
    }
    row, position = torch.arange(500).repeat_interleave(28), torch.arange(2, 30).repeat(500)
    views = CoupledEstimator()(inputs, row, position, mask_token=1)
    masked = (views.token == 1).unflatten(0, (500, 3))
    assert not masked[:, :, :2].any()  # the prompt
    assert masked[:, :, 30:].all()  # the canvas after the answer
    assert masked[:, 0, 2:].all()
    assert (masked[:, 1, 2:30] ^ masked[:, 2, 2:30]).all()
    assert (
        views.token[views.view, position[:, None]] == 1
    ).all()  # each token is masked in its views


def test_coupled_masks_have_less_variance_than_independent_ones(bert):
    policy = replace(bert, max_new_tokens=6, logp_estimator=CoupledEstimator(0.5, 0.5)).build()
    response = next(a for a in answers(policy) if len(a.items) == 6)
    rows_of_streams = batch(policy, [replace(response, rng_key=i) for i in range(400)])
    coupled = policy.signals(rows_of_streams).logp.sum(1)
    rows = rows_of_streams.mask.nonzero(as_tuple=True)
    views, token = policy._masked_views(rows_of_streams)
    logits, _ = policy.denoiser.forward_views(views, policy.tokens_per_microbatch)
    each = logits.log_softmax(-1).gather(1, token.repeat_interleave(2)[:, None])[:, 0]
    whole, partial = each.unflatten(0, views.view.shape).detach().unbind(1)
    # one mask alone: (l_0 + l' / u) / 2 where it masks the token, l_0 / 2 elsewhere
    first = views.view[:, 1] % 3 == 1
    values = (whole + torch.where(first, 2 * partial, 0.0)) / 2
    alone = scatter_to_batch(rows_of_streams, {"x": values})["x"].sum(1)
    assert len(rows[0]) == 2400
    independent = (alone[:200] + alone[200:]).detach() / 2
    assert coupled.var() < independent.var()


def test_masks_belong_to_the_answers_stream(bert):
    policy = bert.build()
    rows = batch(policy, answers(policy))
    logp = policy.signals(rows).logp
    reverse = torch.arange(len(rows.mask)).flip(0)
    torch.testing.assert_close(
        policy.signals(rows.select_rows(reverse)).logp.flip(0), logp, rtol=0, atol=2e-5
    )
    other = [replace(response, rng_key=response.rng_key + 1) for response in answers(policy)]
    assert (policy.signals(batch(policy, other)).logp - logp).abs().max() > 1e-2


@pytest.mark.slow
def test_coupled_estimate_is_unbiased_over_masks(bert):
    """On average over masks, l' / u counts each of the two views once."""
    policy = replace(bert, max_new_tokens=1).build()
    response = replace(answers(policy)[0], items=(9,), logp=(0.0,))
    rows_of_streams = batch(policy, [replace(response, rng_key=i) for i in range(3000)])
    mean = policy.signals(rows_of_streams).logp.double().mean().item()
    prompt = list(response.observation)
    exact = expected_logp(policy, prompt, len(prompt) + 1)[len(prompt), 9].item()
    assert mean == pytest.approx(exact * (1 + 2) / 2, rel=0.03)  # l' = l_0: a single token
