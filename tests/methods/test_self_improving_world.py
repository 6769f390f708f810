"""Self-improving SRPO in a Bradley-Terry world of four items: what a revision improves.

The policy answers an item, or revises an item to another one. Every two items are compared 40
times, and each wins as often as its probability says, rounded.
"""

from itertools import combinations

import pytest
import torch
from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.methods.srpo_self_improving import srpo_self_improving
from grupo.rollouts.samplers.self_improving_pairs import ROWS
from grupo.testing.batches import make_batch

QUALITY = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
WINS = torch.sigmoid(QUALITY[:, None] - QUALITY[None])  # row beats column
NO_PREVIOUS = 4  # the row of the logits without a previous answer
COMPARISONS = 40
BETA = 0.2


def comparisons() -> list[tuple[int, int]]:
    """Chosen and rejected item of every comparison."""
    pairs = []
    for i, j in combinations(range(4), 2):
        wins = round(COMPARISONS * WINS[i, j].item())
        pairs += [(i, j)] * wins + [(j, i)] * (COMPARISONS - wins)
    return pairs


def rows_of(pairs: list[tuple[int, int]]) -> tuple[Tensor, Tensor, Batch]:
    """Previous item and item of the six rows of each pair, and their batch."""
    previous, item, terms = [], [], ([], [])
    for chosen, rejected in pairs:
        for row in ROWS:
            item.append(chosen if row.is_chosen else rejected)
            previous.append({1.0: chosen, 0.0: rejected}.get(row.previous, NO_PREVIOUS))
            terms[0].append(float(row.is_chosen))
            terms[1].append(row.previous)
    uniform = torch.tensor(0.25).log().item()
    batch = make_batch(
        [k for k in range(len(pairs)) for _ in ROWS],
        terms[0],
        logp=uniform,
        reward_terms={"answer_is_chosen": terms[0], "previous_is_chosen": terms[1]},
    )
    return torch.tensor(previous), torch.tensor(item), batch


@pytest.fixture(scope="module")
def policy() -> Tensor:
    """Probability of each item by previous item, and without one in the last row (5, 4)."""
    previous, item, batch = rows_of(comparisons())
    method = srpo_self_improving(BETA)
    batch = batch.with_advantage(method.advantage)
    logits = torch.zeros(5, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        pi = Signals(logp=logits.log_softmax(-1)[previous, item][:, None])
        (method.aggregation(batch) * method.loss(pi, batch)).sum().backward()
        optimizer.step()
    return logits.detach().softmax(-1)


@pytest.mark.slow
def test_a_revision_of_the_worst_item_moves_probability_to_better_items(policy):
    revised = policy[0]
    assert revised.diff().min() > 0.02  # the better an item, the more probable
    assert revised @ QUALITY > QUALITY.mean() + 0.4


@pytest.mark.slow
def test_revisions_have_the_closed_form_of_the_objective(policy):
    expected = (WINS.T / BETA).softmax(-1)  # pi(b | a) ~ exp(P(b beats a) / beta)
    assert (policy[:4] - expected).abs().max() < 0.03


def test_revising_twice_beats_revising_once(policy):
    revise = policy[:4]
    once, twice = revise[0] @ QUALITY, revise[0] @ revise @ QUALITY
    assert twice > once + 0.05
