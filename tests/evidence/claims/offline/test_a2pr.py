"""A2PR: its targets and losses by hand, and actions that the log does not have."""

import pytest
import torch

from grupo.evidence.claims.offline.a2pr import (
    Networks,
    TransitionLog,
    critic_loss,
    fit_a2pr,
    generated_actions,
    generator_loss,
    imitation_targets,
)
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RUNS = ROOT / "docs" / "small_claims_runs" / "logged_walks.jsonl"
WALKS = load_module_file(ROOT / "recipes" / "small_claims" / "logged_walks.py")


class Fixed(torch.nn.Module):
    """A network whose outputs are a table, whatever it reads."""

    def __init__(self, table: list[list[float]]) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.tensor(table, dtype=torch.float64))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.table


def two_states(reward: list[float]) -> TransitionLog:
    """Both actions of state 0: the first one ends, the second one leads to state 1."""
    tensors = (torch.tensor(x) for x in ([0, 0], [0, 1], reward, [1, 1], [1.0, 0.0]))
    state, action, rewards, next_state, ends = tensors
    features = torch.eye(2, dtype=torch.float64)
    return TransitionLog(state, action, rewards.double(), next_state, ends.double(), features, 2)


def fixed_networks(log: TransitionLog) -> Networks:
    networks = Networks(log)
    networks.q = Fixed([[0.5, 0.0], [1.0, 3.0]])
    networks.v = Fixed([[0.25], [0.0]])
    networks.policy = Fixed([[0.0, 0.0], [0.0, 0.0]])  # both actions are equally likely
    networks.generator = Fixed([[0.0, 0.0], [0.0, 0.0]])
    return networks


def test_the_errors_of_both_critics_by_hand():
    log = two_states([1.0, 0.0])
    networks = fixed_networks(log)
    # targets 1 and 0.5 (1 + 3) / 2 = 1; Q errs by 0.5 and 1, V by 0.75 twice
    expected = (0.25 + 1.0) / 2 + 0.75**2
    assert critic_loss(log, networks, networks.q, 0.5).item() == pytest.approx(expected)


def test_the_generator_imitates_logged_actions_of_positive_advantage():
    networks = fixed_networks(two_states([1.0, 0.0]))
    generator_loss(two_states([1.0, 0.0]), networks).backward()  # advantages 0.25 and -0.25
    assert networks.generator.table.grad[0].tolist() == [-0.5, 0.5]


def test_targets_by_hand():
    logged, generated = torch.tensor([1, 1, 1]), torch.tensor([2, 2, 2])
    better, worse = torch.tensor([0.5, 0.1, -0.2]), torch.tensor([0.1, 0.5, -0.1])
    target, weight = imitation_targets(better, worse, logged, generated)
    assert target.tolist() == [1, 2, 2]
    assert weight.tolist() == [2.0, 2.0, 0.0]


def test_actions_that_are_not_logged_are_generated_unless_they_are_excluded():
    log = WALKS.recorded(seed=0)
    networks, random = Networks(log), torch.Generator().manual_seed(0)
    everything = torch.ones_like(log.logged)
    free = generated_actions(log, networks, everything, random)
    logged = generated_actions(log, networks, log.logged, random)
    assert not log.logged[log.state, free].all()
    assert log.logged[log.state, logged].all()


def test_training_on_a_log_raises_the_return_above_that_of_random_walks():
    log = WALKS.recorded(seed=0)
    networks = fit_a2pr(log, steps=60)
    policy = networks.policy(log.features).softmax(-1).detach()
    assert WALKS.value(policy) > WALKS.value(torch.full_like(policy, 0.25)) + 0.1


def test_the_return_of_a_policy_that_always_walks_to_the_goal_is_exact():
    side = WALKS.SIDE
    policy = torch.zeros(side * side, 4, dtype=torch.float64)
    policy[:, 1] = 1.0  # down,
    policy[-side:] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # then right
    last = side - 1
    distances = [(last - s % side) + (last - s // side) for s in range(side * side - 1)]
    expected = sum(0.95 ** (d - 1) for d in distances) / len(distances)
    assert WALKS.value(policy) == pytest.approx(expected)


def test_the_table_of_the_page_is_that_of_the_runs():
    runs = stored_runs(RUNS, WALKS.ARMS, range(12))
    table = paired_table(runs, WALKS.METRICS, WALKS.BASELINE)
    page = (ROOT / "docs" / "small_claims.md").read_text()
    assert set(table.splitlines()) <= set(page.splitlines())
