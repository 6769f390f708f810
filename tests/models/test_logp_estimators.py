"""How likely a masked diffusion model says that its answers are."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from grupo.core.rng import uniform
from grupo.core.types import Action, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.scorers import scatter_to_batch
from tests.helpers.masked_rollouts import answers, batch, hand


def test_the_autoregressive_estimate_is_that_of_each_token_with_all_after_it_masked(bert):
    policy = replace(bert, logp_estimator=AutoregressiveEstimator()).build()
    action = answers(policy)[0]
    prompt = list(action.observation)
    width = len(prompt) + 7
    for i, token in enumerate(action.items):
        here = hand(policy, prompt + list(action.items[:i]), width)[len(prompt) + i]
        assert action.logp[i] == pytest.approx(here[token].item(), abs=1e-5)
        lot = uniform(torch.tensor([action.rng_key]), torch.tensor([len(prompt) + i]))
        assert Sampling().sample(here[None], lot)[0].item() == token


def test_the_probabilities_of_all_answers_add_up_to_one(bert):
    policy = replace(
        bert, logp_estimator=AutoregressiveEstimator(), max_new_tokens=3, sampling=Sampling(top_k=2)
    ).build()
    a, b = 5, 6  # any two tokens, with a vocabulary that is cut to them
    bias = policy.plain.get_output_embeddings().bias
    with torch.no_grad():
        bias[[a, b]] += 1000.0
    actions = [
        Action(parts, (0.0,) * 3, policy.chat_tokenizer.encode_observation(Rollout(), "Hi"))
        for parts in product((a, b), repeat=3)
    ]
    said = policy.signals(batch(policy, actions)).logp.sum(1)
    assert said.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_the_coupled_estimate_is_the_mean_of_a_whole_and_a_weighed_partial_look(bert):
    policy = bert.build()
    action = answers(policy)[0]
    prompt, parts = list(action.observation), list(action.items)
    inputs = batch(policy, [action]).inputs
    start = len(prompt)
    (u,), held = CoupledEstimator().draw_masks(
        inputs["mask_key"][:, start], torch.tensor([start]), start + 7
    )
    held = held[0, start : start + len(parts)].tolist()
    assert 0.2 <= u <= 0.8
    model, mask = policy.plain, policy.denoiser.mask
    tail = [mask] * (7 - len(parts))

    def look(hidden):
        text = [mask if h else t for h, t in zip(hidden, parts, strict=True)]
        logits = model(torch.tensor([prompt + text + tail])).logits[0].detach()
        logits[:, mask] = -torch.inf
        return logits.log_softmax(-1)[start:]

    whole, one, other = look([True] * len(parts)), look(held), look([not h for h in held])
    for i, token in enumerate(parts):
        partial = one[i, token] / u if held[i] else other[i, token] / (1 - u)
        assert action.logp[i] == pytest.approx((whole[i, token] + partial).item() / 2, abs=1e-4)


def test_the_weights_of_a_look_are_those_of_the_paper():
    # u = 1/2, l_0 = -2, partial -1: (-2 + 2 (-1)) / 2 = -2
    inputs = {
        "token": torch.tensor([[9, 9]]),
        "begin": torch.tensor([[0, 0]]),
        "end": torch.tensor([[2, 2]]),
        "canvas_end": torch.tensor([[2, 2]]),
        "mask_key": torch.tensor([[3, 3]]),
    }
    row, place = torch.tensor([0, 0]), torch.tensor([0, 1])
    looks = CoupledEstimator(0.5, 0.5)(inputs, row, place, mask_token=1)
    said = torch.tensor([-2.0, -1.0, -2.0, -1.0])
    assert looks.average_views("logp", said).tolist() == [-2.0, -2.0]
    assert looks.average_views("entropy", -said).tolist() == [1.5, 1.5]


def test_the_two_masks_are_complements_and_no_others_are_seen():
    streams = torch.arange(500)
    share, held = CoupledEstimator().draw_masks(streams, torch.full((500,), 2), 34)
    assert share.min() > 0.2
    assert share.max() < 0.8
    assert (held[:, 2:].double().mean(1) - share).abs().mean() < 0.08  # deviation 0.09 x 0.8
    inputs = {
        "token": torch.full((500, 34), 9),
        "begin": torch.full((500, 34), 2),
        "end": torch.full((500, 34), 30),
        "canvas_end": torch.full((500, 34), 34),
        "mask_key": streams[:, None].expand(-1, 34),
    }
    row, place = torch.arange(500).repeat_interleave(28), torch.arange(2, 30).repeat(500)
    looks = CoupledEstimator()(inputs, row, place, mask_token=1)
    hidden = (looks.token == 1).unflatten(0, (500, 3))
    assert not hidden[:, :, :2].any()  # the prompt
    assert hidden[:, :, 30:].all()  # the canvas behind it
    assert hidden[:, 0, 2:].all()
    assert (hidden[:, 1, 2:30] ^ hidden[:, 2, 2:30]).all()
    assert (looks.token[looks.view, place[:, None]] == 1).all()  # each is looked at where masked


def test_coupled_masks_vary_less_than_two_that_are_independent(bert):
    policy = replace(bert, max_new_tokens=6, logp_estimator=CoupledEstimator(0.5, 0.5)).build()
    action = next(a for a in answers(policy) if len(a.items) == 6)
    several = batch(policy, [replace(action, rng_key=i) for i in range(400)])
    coupled = policy.signals(several).logp.sum(1)
    rows = several.mask.nonzero(as_tuple=True)
    looks, token = policy._masked_views(several)
    logits, _ = policy.denoiser.forward_views(looks, policy.tokens_per_microbatch)
    each = logits.log_softmax(-1).gather(1, token.repeat_interleave(2)[:, None])[:, 0]
    whole, partial = each.unflatten(0, looks.view.shape).detach().unbind(1)
    # a mask alone: (l_0 + l' / u) / 2 where it hides the token, l_0 / 2 where it does not
    first = looks.view[:, 1] % 3 == 1
    alone = scatter_to_batch(several, {"x": (whole + torch.where(first, 2 * partial, 0.0)) / 2})[
        "x"
    ].sum(1)
    assert len(rows[0]) == 2400
    independent = (alone[:200] + alone[200:]).detach() / 2
    assert coupled.var() < independent.var()


def test_whoever_looks_again_looks_under_the_same_masks(bert):
    policy = bert.build()
    one = batch(policy, answers(policy))
    first = policy.signals(one).logp
    backwards = torch.arange(len(one.mask)).flip(0)
    torch.testing.assert_close(
        policy.signals(one.select_rows(backwards)).logp.flip(0), first, rtol=0, atol=2e-5
    )
    other = [replace(action, rng_key=action.rng_key + 1) for action in answers(policy)]
    assert (policy.signals(batch(policy, other)).logp - first).abs().max() > 1e-2


def test_a_mean_of_many_looks_is_what_an_answer_is_worth(bert):
    """On average over masks l' / u counts each of the two sides once."""
    policy = replace(bert, max_new_tokens=1).build()
    action = replace(answers(policy)[0], items=(9,), logp=(0.0,))
    several = batch(policy, [replace(action, rng_key=i) for i in range(3000)])
    said = policy.signals(several).logp.double().mean().item()
    prompt = list(action.observation)
    exact = hand(policy, prompt, len(prompt) + 1)[len(prompt), 9].item()
    assert said == pytest.approx(exact * (1 + 2) / 2, rel=0.03)  # l' = l_0: one token alone
