"""The gradients of steps equal those of the trainer, and their mean that of sampled steps."""

from itertools import product
from math import prod

import pytest
import torch
from torch import nn

from grupo.catalogue.entries import methods
from grupo.catalogue.search import find_entry
from grupo.core.batch import Signals
from grupo.core.schedules import resolve_schedules
from grupo.evidence.exact import FiniteEnv, FiniteTask, expected_gradient
from grupo.evidence.exact.enumeration import select
from grupo.evidence.exact.reach import group_size_of, obstacle
from grupo.evidence.exact.signals import PolicyTables
from grupo.evidence.exact.standard import DIFFICULTIES, LENGTHS, two_answers
from grupo.evidence.exact.step_gradients import make_batch, step_gradients
from grupo.methods.grpo import grpo
from grupo.models.token_statistics import TOKEN_SIGNALS
from grupo.rollouts.samplers import GroupSampler
from grupo.training.update.gradients import accumulate_gradients
from tests.helpers.fast_cases import fast_cases

FAST = ("dapo", "gfpo", "gspo", "kl_cov", "lite_ppo", "pods", "rloo", "skywork_or1")
MEASURED = [entry.key for entry in methods() if not obstacle(entry.method)]
SMALL = FiniteEnv((FiniteTask((0.0, 1.0, 1.0), (0.3, 0.5, 0.2)),))
PAIR = FiniteEnv((two_answers(0.3), two_answers(0.6)))


def tables_of(env, moved=0.0):
    return PolicyTables(env.moved_logits(moved), env.logits, env.logits)


class LogitsPolicy:
    """A policy for the trainer whose parameters are the table of a finite environment."""

    def __init__(self, env, logits):
        self.env = env
        self.table = nn.Parameter(logits.clone())

    def signals(self, batch, names=("logp",)):
        rows = self.env.table_rows[batch.inputs].flatten()
        logp = self.table[rows].log_softmax(-1)
        tokens = self.env.tokens[batch.inputs].flatten()
        shape = batch.mask.shape
        values = {name: TOKEN_SIGNALS[name](logp, tokens).view(shape) for name in names}
        return Signals({name: x * batch.mask for name, x in values.items()})

    is_sharded = False

    def microbatches(self, batch):
        return iter(torch.arange(len(batch.mask)).split(3))


@pytest.mark.parametrize("key", fast_cases(FAST, MEASURED))
def test_the_gradient_of_a_step_is_that_of_the_trainer(key):
    method = resolve_schedules(find_entry(key).method, 0.5)
    if any("@" in name for name in method.requires.recomputed_signals):
        pytest.skip("the trainer compares with a reference model")
    env = FiniteEnv((LENGTHS.tasks[0], LENGTHS.tasks[0]))
    step = ((0, 1, 1, 3, 3), (4, 4, 6, 7))  # one correct answer, and three
    signals = {"sampled", "off_context", "logp@sampler", *method.requires.signals}
    for moved in (0.1, 0.0):
        tables = tables_of(env, moved)
        (expected,) = step_gradients(method, env, [step], tables)
        policy = LogitsPolicy(env, tables.current)
        batch = make_batch(env, step, tables, signals).with_advantage(method.advantage)
        accumulate_gradients(policy, method, batch)
        gradient = (
            torch.zeros_like(policy.table) if policy.table.grad is None else policy.table.grad
        )
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-13)
    assert expected.abs().max() > 0  # of the first update


@pytest.mark.parametrize("key", fast_cases(["gfpo"], MEASURED))
def test_listing_groups_without_order_equals_listing_all_orders(key):
    """For every method of the table: the order of rollouts does not matter."""
    for env, group_size in ((PAIR, 3), (SMALL, 4)):
        method = find_entry(key).method.replace(sampler=GroupSampler(group_size))
        moments = expected_gradient(method, env)
        method = resolve_schedules(method, 0.5)
        probability = env.answer_logp(env.logits).exp().tolist()
        orders = [product(env.answer_numbers(i), repeat=group_size) for i in range(len(env.tasks))]
        sampled = [*product(*orders)]
        weight = [prod(probability[a] for group in step for a in group) for step in sampled]
        kept = [[select(env, group, method.filter) for group in step] for step in sampled]
        steps = [tuple(group for group in step if group) for step in kept]
        gradients = -step_gradients(method, env, steps, tables_of(env))
        mean = torch.einsum("b,bsv->sv", torch.tensor(weight, dtype=torch.float64), gradients)
        torch.testing.assert_close(moments.expected, mean, rtol=1e-9, atol=1e-13)


def test_many_steps_in_one_batch_equal_single_steps():
    steps = [((0, 0, 1), (2, 3, 3)), ((0, 1, 1),), (), ((2, 2, 3), (4, 5, 5))]
    for key in ("dapo", "grpo", "gspo", "opmd"):
        method = resolve_schedules(find_entry(key).method, 0.5)
        tables = tables_of(DIFFICULTIES, moved=0.1)
        together = step_gradients(method, DIFFICULTIES, steps, tables)
        for step, gradient in zip(steps, together, strict=True):
            (single,) = step_gradients(method, DIFFICULTIES, [step], tables)
            torch.testing.assert_close(gradient, single, rtol=1e-12, atol=1e-15)


def test_a_step_without_groups_has_no_gradient():
    empty, other = step_gradients(
        resolve_schedules(grpo(), 0.5), PAIR, [(), ((0, 1),)], tables_of(PAIR)
    )
    assert empty.abs().max() == 0
    assert other.abs().max() > 0.1


@pytest.mark.slow
def test_the_expected_gradient_is_the_mean_of_sampled_steps_within_its_error():
    method = resolve_schedules(grpo(group_size=4), 0.5)
    moments = expected_gradient(method, DIFFICULTIES)
    generator = torch.Generator().manual_seed(0)
    num_steps = 1_500
    columns = [
        torch.tensor(task.probabilities).multinomial(
            num_steps * group_size_of(method), replacement=True, generator=generator
        )
        + DIFFICULTIES.answer_numbers(i).start
        for i, task in enumerate(DIFFICULTIES.tasks)
    ]
    groups = [column.view(num_steps, -1).tolist() for column in columns]
    steps = [tuple(map(tuple, step)) for step in zip(*groups, strict=True)]
    gradients = -step_gradients(method, DIFFICULTIES, steps, tables_of(DIFFICULTIES))
    error = gradients.std(0) / num_steps**0.5
    deviation = (gradients.mean(0) - moments.expected).abs() / error
    assert deviation.max() < 4
    assert moments.variance == pytest.approx(gradients.var(0).sum().item(), rel=0.1)
    # a bias of a fifth would be seen
    assert (0.2 * moments.expected.abs() / error).max() > 4
