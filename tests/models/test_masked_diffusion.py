"""A masked diffusion model: what it draws, and how likely it says that was."""

import asyncio
from dataclasses import replace

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Action, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.masked.unmask_order import ConfidenceOrder
from grupo.models.masked_diffusion import MaskedDiffusion
from tests.helpers import tiny_masked_lm
from tests.helpers.masked_rollouts import ORDERS, answers, batch, hand
from tests.helpers.tiny_lm import PROMPTS, batch_of


@pytest.mark.parametrize(("order", "estimate"), ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("family", tiny_masked_lm.FAMILIES)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, top_k=9)], ids=["plain", "cut"])
def test_what_was_sampled_is_evaluated_again_alike(
    masked_folders, family, order, estimate, sampling
):
    how = {"order": order, "logp_estimator": estimate, "sampling": sampling}
    policy = MaskedDiffusion(masked_folders[family], **how, max_new_tokens=7).build()
    one = batch(policy, answers(policy))
    assert one.mask.sum() > 30
    torch.testing.assert_close(policy.signals(one).logp, one.old_logp, rtol=0, atol=2e-5)
    assert not (policy.signals(one).logp[one.mask] == 0).all()


@pytest.mark.parametrize(("order", "estimate"), ORDERS.values(), ids=ORDERS)
def test_a_stream_says_the_same_alone_and_among_others(bert, order, estimate):
    policy = replace(bert, order=order, logp_estimator=estimate).build()
    together = answers(policy)
    assert [a.items for a in answers(policy)] == [a.items for a in together]
    alone = asyncio.run(policy.actor(7).fork(1, 2)(Rollout(), PROMPTS[1]))
    assert alone.items == together[5].items
    assert len({a.items for a in together[3:6]}) > 1


def test_a_token_is_drawn_as_often_as_the_model_says(bert):
    policy = replace(bert, max_new_tokens=1, sampling=Sampling(top_k=4)).build()

    async def many() -> list[Action]:
        act = policy.actor(1)
        return await asyncio.gather(*(act.fork(i)(Rollout(), "Hi") for i in range(4000)))

    said = [action.items[0] for action in asyncio.run(many())]
    prompt = list(policy.chat_tokenizer.encode_observation(Rollout(), "Hi"))
    p = hand(policy, prompt, len(prompt) + 1)[len(prompt)]
    four = p.topk(4)
    share = four.values.exp() / four.values.exp().sum()
    for token, expected in zip(four.indices.tolist(), share.tolist(), strict=True):
        assert said.count(token) / 4000 == pytest.approx(expected, abs=0.035)


def test_the_most_confident_place_is_unmasked_first(bert):
    policy = replace(bert, order=ConfidenceOrder(7), sampling=Sampling(top_k=1)).build()
    action = answers(policy)[0]
    prompt, mask = list(action.observation), policy.denoiser.mask
    text = prompt + [mask] * 7
    for _ in range(7):
        said = policy.plain(torch.tensor([text])).logits[0].detach()
        said[:, mask] = -torch.inf
        best = said.log_softmax(-1).max(-1)
        left = [i for i, t in enumerate(text) if t == mask]
        place = max(left, key=lambda i: best.values[i].item())
        text[place] = int(best.indices[place])
    assert tuple(text[len(prompt) :]) == action.items


def test_an_answer_that_was_cut_goes_on_on_the_same_canvas(bert):
    policy = replace(bert, logp_estimator=AutoregressiveEstimator()).build()

    async def work() -> tuple[Action, Rollout]:
        act = policy.actor(5)
        whole = await act(Rollout(), "Hi")
        rollout = Rollout().append_turn("Hi", await act.with_stop(max_new_tokens=2)(Rollout(), "Hi"))
        for _ in range(2):
            rollout = rollout.append_turn(
                "", await act.with_stop(max_new_tokens=2 * len(rollout.turns))(rollout, "")
            )
        return whole, rollout

    whole, rollout = asyncio.run(work())
    actions = [action for _, action in rollout.turns]
    assert [len(action.items) for action in actions] == [2, 2, 3]  # 7 places: no room for more
    assert sum((action.items for action in actions), ()) == whole.items
    assert sum((action.logp for action in actions), ()) == pytest.approx(whole.logp, abs=1e-5)
    again = batch_of(policy, [rollout])
    torch.testing.assert_close(policy.signals(again).logp, again.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("order", "estimate"), ORDERS.values(), ids=ORDERS)
def test_rollouts_of_several_turns_and_contexts_are_evaluated_again_alike(bert, order, estimate):
    policy = replace(bert, order=order, logp_estimator=estimate).build()

    async def work() -> Rollout:
        act = policy.actor(5)
        rollout = Rollout().append_turn("Hi", await act.with_stop(max_new_tokens=3)(Rollout(), "Hi"))
        rollout = rollout.append_turn("", await act.prefill_forced(rollout, "", "So"))
        rollout = rollout.append_turn("", await act.fork(1)(rollout, ""))
        rollout = rollout.append_turn("And?", await act.fork(2)(rollout, "And?"))
        return rollout.append_turn("Now", await act.fork(3).restart_context(rollout, "Now", 2))

    again = batch_of(policy, [asyncio.run(work())])
    assert again.rollout.tolist() == [0, 0]
    off = (policy.signals(again).logp - again.old_logp)[again.mask]
    assert off.abs().max() < 2e-5


def test_a_text_ends_with_the_end_or_where_it_is_told_to_stop(bert):
    policy = replace(bert, order=ConfidenceOrder(7)).build()
    whole = asyncio.run(policy.actor(3)(Rollout(), PROMPTS[2]))
    assert len(whole.items) == 7
    letter = whole.text[2]
    cut = asyncio.run(policy.actor(3).with_stop(letter)(Rollout(), PROMPTS[2]))
    assert cut.text == whole.text[: whole.text.index(letter) + 1]
    assert (cut.items, cut.finish_reason) == (
        whole.items,
        "stop",
    )  # its block is learned as a whole
    end = policy.chat_tokenizer.ends[0]
    assert (
        policy.actor(3)._answer_text((*policy.chat_tokenizer.encode_forced("ab"), end, 9)) == "ab"
    )


def test_what_is_recited_fills_its_last_block(bert):
    policy = replace(bert, order=ConfidenceOrder(4)).build()
    said = asyncio.run(policy.actor(3).append_unsampled(Rollout(), "Hi", "abcd"))
    end = policy.chat_tokenizer.ends[0]
    assert said.items == (*policy.chat_tokenizer.encode_forced("abcd"), end, end, end, end)
    assert not said.sampled
    other = asyncio.run(policy.actor(4).append_unsampled(Rollout(), "Hi", "abcd"))
    assert said.stream != other.stream  # each is looked at under masks of its own


def test_micro_batches_hold_every_row_once_and_change_no_signal(bert):
    policy = bert.build()
    one = batch(policy, answers(policy))
    whole = policy.signals(one).logp
    for budget in (1, 300, 1 << 20):
        policy.tokens_per_microbatch = budget
        parts = list(policy.micro(one))
        assert torch.cat(parts).sort().values.tolist() == list(range(len(one.mask)))
        for rows in parts:
            said = policy.signals(one.select_rows(rows)).logp
            torch.testing.assert_close(said, whole[rows], rtol=0, atol=2e-5)
    assert len(parts) == 1


@pytest.mark.parametrize(
    "estimate", [AutoregressiveEstimator(), CoupledEstimator()], ids=["left", "coupled"]
)
def test_texts_that_are_read_in_parts_have_the_gradient_of_all_at_once(bert, estimate):
    policy = replace(bert, logp_estimator=estimate).build()
    one = batch(policy, answers(policy))
    gradients = []
    for budget in (1 << 20, 100):
        policy.tokens_per_microbatch = budget
        (
            policy.signals(one).logp * torch.arange(one.mask.numel()).view_as(one.mask)
        ).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in policy.parameters()]))
        policy.module.zero_grad()
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)
    assert gradients[0].abs().max() > 1


def test_it_reads_less_at_once_until_that_is_no_help(bert):
    policy = bert.build()
    one = batch(policy, answers(policy))
    said = []
    while True:
        policy.signals(one)
        if not (line := policy.halve_microbatch()):
            break
        said.append(line)
    assert said[0] == "Out of memory: micro-batches hold 8192 tokens from now on."
    assert len(said) < 12


def test_a_reference_stays_and_can_be_compared_with(bert):
    policy = bert.build()
    needs = ["logp@ref", "logp@t=2.0", "entropy"]
    company = policy.attach_aux_models(needs, ReferenceUpdate(), ())
    one = batch(policy, answers(policy))
    before = policy.signals(one, ["entropy", "reverse_kl@ref"])
    assert before["reverse_kl@ref"].abs().max() < 1e-5
    assert (before.entropy[one.mask] >= 0).all()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.1)
    ref = company.scorers["ref"].signals(one)
    torch.testing.assert_close(ref.logp, one.old_logp, rtol=0, atol=2e-5)
    assert (policy.signals(one).logp - one.old_logp).abs().max() > 0.1
    assert policy.signals(one, ["reverse_kl@ref"])["reverse_kl@ref"][one.mask].min() > 0
    hot = company.scorers["t=2.0"].signals(one, ["logp"])
    assert (hot.logp - policy.signals(one).logp).abs().max() > 0.1
    company = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(rate=1.0), ())
    company.after(1, policy)
    said = company.scorers["ref"].signals(one).logp
    torch.testing.assert_close(said, policy.signals(one).logp)


def test_it_takes_on_heads_and_speaks_apart(bert):
    policy = bert.build()
    one = batch(policy, answers(policy))
    policy.attach_heads((LinearHead("value", 0.5),))
    assert policy.signals(one, ["value"])["value"][one.mask].tolist() == [0.5] * int(one.mask.sum())
    policy.detach_sampler()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.1)
    old = [a.items for a in answers(policy)]
    assert [a.items for a in answers(policy)] == old
    policy.sync_weights(policy.weight_sync.take(), 3)
    assert [a.items for a in answers(policy)] != old
    assert answers(policy)[0].policy_version == 3


def test_what_is_exported_loads_again(bert, tmp_path):
    policy = bert.build()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.05)
    policy.export(tmp_path)
    again = replace(bert, model=str(tmp_path)).build()
    one = batch(policy, answers(policy))
    torch.testing.assert_close(again.signals(one).logp, policy.signals(one).logp)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: 0. Allowed: 1 or more"),
        ({"max_new_tokens": 64}, "max_new_tokens: 64. Allowed: below 64"),
        ({"stop_strings": ("",)}, "stop_strings: .* none of them empty"),
        ({"stop_strings": "END"}, "stop_strings: .END.. Allowed: a tuple of texts"),
        (
            {"order": ConfidenceOrder(4), "logp_estimator": AutoregressiveEstimator()},
            r"order: Confident\(.*Allowed: LeftToRight\(\) with Autoregressive\(\)",
        ),
    ],
)
def test_a_spec_that_cannot_be_is_refused(bert, changes, said):
    with pytest.raises(ConfigError, match=said):
        replace(bert, **changes).build()


def test_what_cannot_be_used_is_refused(bert, tmp_path):
    with pytest.raises(ConfigError, match=r"at_once: 9. Allowed: 1 to 8"):
        ConfidenceOrder(8, tokens_per_step=9)
    with pytest.raises(ConfigError, match="above 0, in order, below 1"):
        CoupledEstimator(0.8, 0.2)
    folder = tiny_masked_lm.plant(tmp_path / "none", mask_token=None)
    with pytest.raises(ConfigError, match="no mask token"):
        replace(bert, model=str(folder)).build()
    with pytest.raises(ConfigError, match=r"aux_models: 'teacher'. Allowed"):
        bert.build().attach_aux_models(["logp@teacher"], ReferenceUpdate(), ())
