"""The signal `logp@current`: the policy at the start of the step, in the context it trains in."""

import asyncio

import pytest
import torch

from grupo.algo.losses import Clip, RatioToCurrent, ReverseKL
from grupo.config.validate import check_recipe
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Rollout
from grupo.method import Method
from grupo.testing.batches import make_batch, perturb_logp
from grupo.testing.thread_ranks import run_ranks
from grupo.toy.quickstart import RECIPE
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.signals import add_signals
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm

HINT = "the answer is 4. "


def hinted_and_plain(policy):
    """Two rollouts moved behind the plain prompt, and two that were generated behind it."""

    async def generate(number):
        actor, prompt = policy.actor(5).fork(number), "2+2?"
        start = HINT + prompt if number < 2 else prompt
        rollout = Rollout(reward=float(number)).append_turn(start, await actor(Rollout(), start))
        return actor.with_prompt(rollout, prompt) if number < 2 else rollout

    async def generate_all():
        return await asyncio.gather(*map(generate, range(4)))

    return run_coroutine(generate_all())


def with_current(policy, batch, ranks=None):
    models = policy.attach_aux_models({"logp@current"}, ReferenceUpdate(), ()).signal_models
    more = () if ranks is None else (ranks,)
    return add_signals(policy, models, batch, {"logp@current"}, *more)


def test_current_logp_is_that_of_the_trained_context(llama):
    policy = llama.build()
    batch = with_current(policy, tiny_lm.batch_of(policy, hinted_and_plain(policy)))
    current, old, mask = batch.signals["logp@current"], batch.old_logp, batch.mask
    torch.testing.assert_close(current[2:][mask[2:]], old[2:][mask[2:]], atol=2e-5, rtol=0)
    assert (current - old)[:2][mask[:2]].abs().max() > 0.05  # the hint changed the distribution
    expected = policy.signals(batch).logp.detach()
    torch.testing.assert_close(current, expected, atol=2e-5, rtol=0)


def test_every_ratio_of_the_first_update_is_one(llama):
    policy = llama.build()
    batch = with_current(policy, tiny_lm.batch_of(policy, hinted_and_plain(policy)))
    batch = batch.with_advantage(lambda x, _: torch.ones_like(x))
    pi = policy.signals(batch)
    # -r A with A = 1
    torch.testing.assert_close(
        RatioToCurrent(Clip())(pi, batch)[batch.mask],
        -torch.ones_like(batch.old_logp[batch.mask]),
        atol=5e-5,
        rtol=0,
    )
    first = accumulate_gradients(policy, Method(loss=RatioToCurrent(Clip())), batch)
    assert first["clip_frac/low"] == first["clip_frac/high"] == 0
    assert accumulate_gradients(policy, Method(loss=Clip()), batch)["clip_frac/high"] > 0


@pytest.mark.parametrize("tokens", [1, 20, 1 << 20])
def test_current_logp_is_the_same_in_all_microbatches_and_ranks(llama, tokens):
    policy = llama.build()
    batch = tiny_lm.batch_of(policy, hinted_and_plain(policy))
    whole = with_current(policy, batch).signals["logp@current"]
    policy.tokens_per_microbatch = tokens
    parts = with_current(policy, batch).signals["logp@current"]
    torch.testing.assert_close(parts, whole, atol=2e-5, rtol=0)
    copies = [policy, llama.build()]  # ranks are threads here, and a policy is one thread's
    by_rank = run_ranks(2, lambda ranks: with_current(copies[ranks.rank], batch, ranks))
    for of_rank in by_rank:
        torch.testing.assert_close(of_rank.signals["logp@current"], whole, atol=2e-5, rtol=0)


def test_a_loss_on_sampled_rows_is_the_same_with_ratios_to_the_current_policy():
    batch = make_batch(group=[0, 0], advantage=[1.0, -1.0])
    batch = batch.with_signals({"logp@current": batch.old_logp})
    pi = perturb_logp(batch, [[0.3], [0.1]])
    assert torch.equal(RatioToCurrent(Clip())(pi, batch), Clip()(pi, batch))


def test_current_logp_needs_no_configuration_and_no_divergence_reads_it():
    check_recipe(RECIPE.replace(method=Method(loss=RatioToCurrent(Clip()))))
    with pytest.raises(ConfigError, match="a divergence of the policy from itself"):
        check_recipe(RECIPE.replace(method=Method(loss=ReverseKL("current"))))
