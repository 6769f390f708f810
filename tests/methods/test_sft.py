import pytest
import torch

from grupo.core.types import Task
from grupo.methods.sft import sft
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.event_loop import run_coroutine


def test_loss_is_the_mean_nll_of_all_tokens_of_the_step():
    batch = make_batch([0, 1], logp=0.0, length=[2, 1]).with_advantage(sft().advantage)
    pi = perturb_logp(batch, [[-0.5, -1.0], [-3.0, 0.0]])
    loss = (sft().aggregation(batch) * sft().loss(pi, batch)).sum()
    assert loss.item() == pytest.approx((0.5 + 1.0 + 3.0) / 3)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[batch.mask].tolist() == pytest.approx([-1 / 3] * 3)


def test_reward_is_ignored():
    batch = make_batch([0, 1], reward=[-3.0, 0.0], logp=0.0, length=[1, 1])
    batch = batch.with_advantage(sft().advantage)
    pi = perturb_logp(batch, [[-1.0], [-2.0]])
    (gradient,) = torch.autograd.grad(
        (sft().aggregation(batch) * sft().loss(pi, batch)).sum(), pi.logp
    )
    assert gradient.flatten().tolist() == pytest.approx([-0.5, -0.5])


def test_step_needs_no_other_model_and_no_signal():
    assert sft().requires.all_signals == frozenset() == sft().requires.recomputed_signals
    assert not sft().requires.heads


class NamingActor:
    """Records the demonstration that it is given."""

    def demonstrate(self, demonstration):
        from grupo.core.types import Rollout

        self.demonstration = demonstration
        return Rollout()


def test_options_choose_column_and_tokens():
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    task = Task("k", tuple(chat[:1]), columns={"messages": chat, "reply": "c"})
    for options, answer, all_tokens in (
        ({}, chat[1], False),
        ({"assistant_only": False}, chat[1], True),
        ({"column": "reply"}, "c", False),
    ):
        actor = NamingActor()
        group = run_coroutine(sft(**options).sampler(task, None, actor))
        assert actor.demonstration.turns[0][1] == answer
        assert actor.demonstration.all_tokens == all_tokens
        assert group.rewards == (1.0,)
