"""Concentration: cosines by hand, the signal of a policy, and the column of prompts."""

import pytest
import torch

from grupo.core.types import Rollout, Task
from grupo.evidence.survey import PromptConcentration
from grupo.evidence.survey.prompt_concentration import prompt_states
from grupo.models.concentration import cross_cosine, pair_cosine, row_concentration
from grupo.tasks import InMemoryTasks
from tests.models.test_aux_models import answer_batch


def test_equal_directions_have_cosine_1_and_orthogonal_ones_0():
    assert pair_cosine(torch.tensor([[1.0, 0.0], [5.0, 0.0]])) == 1
    assert pair_cosine(torch.tensor([[1.0, 0.0], [0.0, 2.0]])) == 0
    three = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    assert pair_cosine(three) == pytest.approx(1 / 3)  # of the three pairs one has cosine 1
    assert pair_cosine(three[:1]) == 0
    assert cross_cosine(three, three[:0]) == 0
    assert cross_cosine(three, -three[:1]) == pytest.approx(-2 / 3)


def test_each_row_has_its_own_concentration():
    hidden = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 1.0]])
    values = row_concentration(hidden, torch.tensor([0, 2, 0, 2]), num_rows=4)
    assert values.tolist() == [1, 1, 1, 1]
    values = row_concentration(hidden, torch.tensor([0, 0, 1, 3]), num_rows=4)
    assert values.tolist() == [0, 0, 0, 0]


def test_a_long_row_in_bfloat16_has_the_concentration_of_float32():
    hidden = torch.eye(2).repeat(500, 1)  # 499 of the 999 other tokens are equal
    row = torch.zeros(1000, dtype=torch.long)
    for states in (hidden, hidden.bfloat16()):
        assert row_concentration(states, row, 1)[0] == pytest.approx(499 / 999)
        assert pair_cosine(states) == pytest.approx(499 / 999)


def test_the_signal_of_a_policy_is_the_cosine_of_its_hidden_states(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    signal = policy.signals(batch, ["concentration"])["concentration"]
    hidden = policy.distributions(batch).hidden.values.detach()
    row = batch.mask.nonzero()[:, 0]
    for i in range(len(batch.mask)):
        expected = pair_cosine(hidden[row == i])
        torch.testing.assert_close(
            signal[i][batch.mask[i]],
            expected.expand(int(batch.mask[i].sum())),
            rtol=1e-4,
            atol=1e-5,
        )


def test_prompts_get_the_column_from_their_hidden_states(llama):
    tasks = InMemoryTasks([Task("a", "Hi all"), Task("b", "Hi you"), Task("c", "Hi")])
    scored = list(PromptConcentration(tasks, llama, prefix_coef=2.0, batch_size=2).load())
    policy = llama.build()
    prompts = [policy.encode_observation(Rollout(), task.prompt) for task in scored]
    shared = len(prompts[2])
    for task, hidden in zip(scored, prompt_states(policy, prompts), strict=True):
        before, question = hidden[:shared], hidden[shared:]
        expected = pair_cosine(question) + 2 * cross_cosine(question, before)
        assert task.columns["concentration"] == pytest.approx(float(expected), abs=1e-5)
