"""Masked diffusion policies: generation by unmasking, and evaluation."""

import asyncio
from dataclasses import replace

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Response, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.masked.unmask_order import ConfidenceOrder
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_masked_lm
from tests.helpers.fast_cases import fast_cases
from tests.helpers.masked_rollouts import ORDERS, answers, batch, expected_logp
from tests.helpers.tiny_lm import PROMPTS, batch_of


@pytest.mark.parametrize(("order", "estimator"), ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("family", tiny_masked_lm.FAMILIES)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, top_k=9)], ids=["plain", "cut"])
def test_evaluated_logp_matches_generation(masked_folders, family, order, estimator, sampling):
    options = {"order": order, "logp_estimator": estimator, "sampling": sampling}
    policy = MaskedDiffusion(masked_folders[family], **options, max_new_tokens=7).build()
    rows_batch = batch(policy, answers(policy))
    assert rows_batch.mask.sum() > 30
    torch.testing.assert_close(
        policy.signals(rows_batch).logp, rows_batch.old_logp, rtol=0, atol=2e-5
    )
    assert not (policy.signals(rows_batch).logp[rows_batch.mask] == 0).all()


@pytest.mark.parametrize(("order", "estimator"), ORDERS.values(), ids=ORDERS)
def test_answers_do_not_depend_on_the_batch(bert, order, estimator):
    policy = replace(bert, order=order, logp_estimator=estimator).build()
    together = answers(policy)
    assert [a.items for a in answers(policy)] == [a.items for a in together]
    alone = run_coroutine(policy.actor(7).fork(1, 2)(Rollout(), PROMPTS[1]))
    assert alone.items == together[5].items
    assert len({a.items for a in together[3:6]}) > 1


@pytest.mark.slow
def test_token_frequencies_match_probabilities(bert):
    policy = replace(bert, max_new_tokens=1, sampling=Sampling(top_k=4)).build()

    async def generate_many() -> list[Response]:
        act = policy.actor(1)
        return await asyncio.gather(*(act.fork(i)(Rollout(), "Hi") for i in range(4000)))

    tokens = [response.items[0] for response in run_coroutine(generate_many())]
    prompt = list(policy.chat_tokenizer.encode_observation(Rollout(), "Hi"))
    p = expected_logp(policy, prompt, len(prompt) + 1)[len(prompt)]
    four = p.topk(4)
    expected_share = four.values.exp() / four.values.exp().sum()
    for token, expected in zip(four.indices.tolist(), expected_share.tolist(), strict=True):
        assert tokens.count(token) / 4000 == pytest.approx(expected, abs=0.035)


def test_most_confident_position_is_unmasked_first(bert):
    policy = replace(bert, order=ConfidenceOrder(7), sampling=Sampling(top_k=1)).build()
    response = answers(policy)[0]
    prompt, mask = list(response.observation), policy.denoiser.mask_token
    text = prompt + [mask] * 7
    for _ in range(7):
        logits = policy.hf_model(torch.tensor([text])).logits[0].detach()
        logits[:, mask] = -torch.inf
        best = logits.log_softmax(-1).max(-1)
        left = [i for i, t in enumerate(text) if t == mask]
        position = max(left, key=lambda i: best.values[i].item())
        text[position] = int(best.indices[position])
    assert tuple(text[len(prompt) :]) == response.items


def test_truncated_answer_continues_on_its_canvas(bert):
    policy = replace(bert, logp_estimator=AutoregressiveEstimator()).build()

    async def work() -> tuple[Response, Rollout]:
        act = policy.actor(5)
        whole = await act(Rollout(), "Hi")
        rollout = Rollout().append_turn(
            "Hi", await act.with_stop(max_new_tokens=2)(Rollout(), "Hi")
        )
        for _ in range(2):
            rollout = rollout.append_turn(
                "", await act.with_stop(max_new_tokens=2 * len(rollout.turns))(rollout, "")
            )
        return whole, rollout

    whole, rollout = run_coroutine(work())
    responses = [response for _, response in rollout.turns]
    assert [len(response.items) for response in responses] == [2, 2, 3]  # a canvas has 7 positions
    assert sum((response.items for response in responses), ()) == whole.items
    assert sum((response.logp for response in responses), ()) == pytest.approx(whole.logp, abs=1e-5)
    again = batch_of(policy, [rollout])
    torch.testing.assert_close(policy.signals(again).logp, again.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("order", "estimator"), ORDERS.values(), ids=ORDERS)
def test_evaluated_logp_matches_over_turns_and_contexts(bert, order, estimator):
    policy = replace(bert, order=order, logp_estimator=estimator).build()

    async def work() -> Rollout:
        act = policy.actor(5)
        rollout = Rollout().append_turn(
            "Hi", await act.with_stop(max_new_tokens=3)(Rollout(), "Hi")
        )
        rollout = rollout.append_turn("", await act.prefill_forced(rollout, "", "So"))
        rollout = rollout.append_turn("", await act.fork(1)(rollout, ""))
        rollout = rollout.append_turn("And?", await act.fork(2)(rollout, "And?"))
        return rollout.append_turn("Now", await act.fork(3).restart_context(rollout, "Now", 2))

    again = batch_of(policy, [run_coroutine(work())])
    assert again.rollout.tolist() == [0, 0]
    off = (policy.signals(again).logp - again.old_logp)[again.mask]
    assert off.abs().max() < 2e-5


def test_text_ends_with_an_end_token_or_a_stop_string(bert):
    policy = replace(bert, order=ConfidenceOrder(7)).build()
    whole = run_coroutine(policy.actor(3)(Rollout(), PROMPTS[2]))
    assert len(whole.items) == 7
    letter = whole.text[2]
    cut = run_coroutine(policy.actor(3).with_stop(letter)(Rollout(), PROMPTS[2]))
    assert cut.text == whole.text[: whole.text.index(letter) + 1]
    # the whole block is in the loss
    assert (cut.items, cut.finish_reason) == (whole.items, "stop")
    end = policy.chat_tokenizer.eos_token_ids[0]
    assert (
        policy.actor(3)._answer_text((*policy.chat_tokenizer.encode_forced("ab"), end, 9)) == "ab"
    )


def test_unsampled_text_fills_its_last_block(bert):
    policy = replace(bert, order=ConfidenceOrder(4)).build()
    response = run_coroutine(policy.actor(3).append_unsampled(Rollout(), "Hi", "abcd"))
    end = policy.chat_tokenizer.eos_token_ids[0]
    assert response.items == (*policy.chat_tokenizer.encode_forced("abcd"), end, end, end, end)
    assert not response.sampled
    other = run_coroutine(policy.actor(4).append_unsampled(Rollout(), "Hi", "abcd"))
    assert response.rng_key != other.rng_key  # each has masks of its own


def test_microbatches_hold_every_row_once_and_change_no_signal(bert):
    policy = bert.build()
    rows_batch = batch(policy, answers(policy))
    whole = policy.signals(rows_batch).logp
    for max_tokens in (1, 300, 1 << 20):
        policy.tokens_per_microbatch = max_tokens
        parts = list(policy.microbatches(rows_batch))
        assert torch.cat(parts).sort().values.tolist() == list(range(len(rows_batch.mask)))
        for rows in parts:
            logp = policy.signals(rows_batch.select_rows(rows)).logp
            torch.testing.assert_close(logp, whole[rows], rtol=0, atol=2e-5)
    assert len(parts) == 1


@pytest.mark.parametrize(
    "estimator",
    fast_cases(1, [AutoregressiveEstimator(), CoupledEstimator()]),
    ids=["left", "coupled"],
)
def test_views_in_several_batches_have_the_gradient_of_one_batch(bert, estimator):
    policy = replace(bert, logp_estimator=estimator).build()
    rows_batch = batch(policy, answers(policy))
    gradients = []
    for max_tokens in (1 << 20, 100):
        policy.tokens_per_microbatch = max_tokens
        (
            policy.signals(rows_batch).logp
            * torch.arange(rows_batch.mask.numel()).view_as(rows_batch.mask)
        ).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in policy.parameters()]))
        policy.module.zero_grad()
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)
    assert gradients[0].abs().max() > 1


def test_microbatch_is_halved_until_it_holds_one_row(bert):
    policy = bert.build()
    rows_batch = batch(policy, answers(policy))
    messages = []
    while True:
        policy.signals(rows_batch)
        if not (message := policy.halve_microbatch()):
            break
        messages.append(message)
    assert messages[0] == "Out of memory: micro-batches hold 8192 tokens from now on."
    assert len(messages) < 12


def test_reference_and_other_temperatures_can_be_compared_with(bert):
    policy = bert.build()
    required = ["logp@ref", "logp@t=2.0", "entropy"]
    aux_models = policy.attach_aux_models(required, ReferenceUpdate(), ())
    rows_batch = batch(policy, answers(policy))
    before = policy.signals(rows_batch, ["entropy", "reverse_kl@ref"])
    assert before["reverse_kl@ref"].abs().max() < 1e-5
    assert (before.entropy[rows_batch.mask] >= 0).all()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.1)
    ref = aux_models.signal_models["ref"].signals(rows_batch)
    torch.testing.assert_close(ref.logp, rows_batch.old_logp, rtol=0, atol=2e-5)
    assert (policy.signals(rows_batch).logp - rows_batch.old_logp).abs().max() > 0.1
    assert (
        policy.signals(rows_batch, ["reverse_kl@ref"])["reverse_kl@ref"][rows_batch.mask].min() > 0
    )
    hot = aux_models.signal_models["t=2.0"].signals(rows_batch, ["logp"])
    assert (hot.logp - policy.signals(rows_batch).logp).abs().max() > 0.1
    aux_models = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(rate=1.0), ())
    aux_models.update_reference(1, policy)
    logp = aux_models.signal_models["ref"].signals(rows_batch).logp
    torch.testing.assert_close(logp, policy.signals(rows_batch).logp)


def test_heads_and_detached_sampler(bert):
    policy = bert.build()
    rows_batch = batch(policy, answers(policy))
    policy.attach_heads((LinearHead("value", 0.5),))
    assert policy.signals(rows_batch, ["value"])["value"][rows_batch.mask].tolist() == [0.5] * int(
        rows_batch.mask.sum()
    )
    policy.use_weight_copy_for_generation()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.1)
    old = [a.items for a in answers(policy)]
    assert [a.items for a in answers(policy)] == old
    policy.sync_weights(policy.weight_sync.snapshot(), 3)
    assert [a.items for a in answers(policy)] != old
    assert answers(policy)[0].policy_version == 3


def test_exported_model_loads_again(bert, tmp_path):
    policy = bert.build()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.05)
    policy.export(tmp_path)
    again = replace(bert, model=str(tmp_path)).build()
    rows_batch = batch(policy, answers(policy))
    torch.testing.assert_close(again.signals(rows_batch).logp, policy.signals(rows_batch).logp)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: 0. Allowed: 1 or more"),
        ({"max_new_tokens": 64}, "max_new_tokens: 64. Allowed: below 64"),
        ({"stop_strings": ("",)}, "stop_strings: .* not empty"),
        ({"stop_strings": "END"}, "stop_strings: .END.. Allowed: a tuple"),
        (
            {"order": ConfidenceOrder(4), "logp_estimator": AutoregressiveEstimator()},
            r"order: ConfidenceOrder\(.*Allowed: LeftToRight\(\) with AutoregressiveEstimator\(\)",
        ),
    ],
)
def test_invalid_specs_raise_config_errors(bert, changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(bert, **changes).build()


def test_invalid_components_raise_config_errors(bert, tmp_path):
    with pytest.raises(ConfigError, match=r"tokens_per_step: 9. Allowed: 1 to 8"):
        ConfidenceOrder(8, tokens_per_step=9)
    with pytest.raises(ConfigError, match=r"0\.8, which is min_mask_ratio, or more"):
        CoupledEstimator(0.8, 0.2)
    folder = tiny_masked_lm.save_model(tmp_path / "none", mask_token=None)
    with pytest.raises(ConfigError, match="no mask token"):
        replace(bert, model=str(folder)).build()
    with pytest.raises(ConfigError, match=r"aux_models: 'teacher'. Allowed"):
        bert.build().attach_aux_models(["logp@teacher"], ReferenceUpdate(), ())
