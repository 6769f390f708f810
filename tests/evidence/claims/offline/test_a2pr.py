"""A2PR: its targets by hand, and a grid whose log has walks of mixed quality."""

from random import Random

import pytest
import torch

from grupo.evidence.claims.offline.a2pr import (
    Critic,
    TransitionLog,
    behaviour_model,
    fit_a2pr,
    imitation_targets,
)

SIDE, GOAL, LIMIT, GAMMA = 5, 24, 30, 0.95
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))


def moved(state: int, action: int) -> int:
    x, y = state % SIDE + MOVES[action][0], state // SIDE + MOVES[action][1]
    return y * SIDE + x if 0 <= x < SIDE and 0 <= y < SIDE else state


def recorded(seed: int, walks: int = 24) -> TransitionLog:
    """Walks from random places, of which a third goes to the goal with 70 % of its actions."""
    rng = Random(seed)
    rows = []
    for number in range(walks):
        state = rng.randrange(SIDE * SIDE - 1)
        for _ in range(LIMIT):
            good = [a for a in (1, 3) if moved(state, a) != state]
            towards = number % 3 == 0 and rng.random() < 0.7
            action = rng.choice(good) if towards else rng.randrange(4)
            there = moved(state, action)
            rows.append((state, action, float(there == GOAL), there, float(there == GOAL)))
            state = there
            if state == GOAL:
                break
    columns = [torch.tensor(column) for column in zip(*rows, strict=True)]
    columns[2], columns[4] = columns[2].double(), columns[4].double()
    return TransitionLog(*columns, SIDE * SIDE, 4)


def value(policy: torch.Tensor) -> float:
    """Exact discounted return from a uniform start, in `LIMIT` actions."""
    v = torch.zeros(SIDE * SIDE).double()
    there = torch.tensor([[moved(s, a) for a in range(4)] for s in range(SIDE * SIDE)])
    arrives = (there == GOAL).double()
    for _ in range(LIMIT):
        v = (policy * (arrives + (1 - arrives) * GAMMA * v[there])).sum(-1)
    return v[:GOAL].mean().item()


def cloned(log: TransitionLog, weight: torch.Tensor) -> torch.Tensor:
    """Weighted frequencies; uniform in states without a log."""
    count = log.counts(weight) + 1e-9
    return count / count.sum(-1, keepdim=True)


def off_data(log: TransitionLog, policy: torch.Tensor) -> float:
    """Mean probability of actions that are not logged, over logged states."""
    count = log.counts(torch.ones_like(log.reward))
    return (policy * (count == 0)).sum(-1)[count.sum(-1) > 0].mean().item()


def arms(seed: int) -> dict[str, torch.Tensor]:
    log = recorded(seed)
    start = torch.randn(25, 4, generator=torch.Generator().manual_seed(seed)).double()
    a2pr, critic = fit_a2pr(log, start, seed=seed)
    free, _ = fit_a2pr(log, start, imitation_weight=0.0, seed=seed)
    advantage = (critic.q - critic.v[:, None])[log.state, log.action]
    spread = advantage.std()
    return {
        "a2pr": a2pr,
        "free": free,
        "cloning": cloned(log, torch.ones_like(log.reward)),
        "weighted": cloned(log, (advantage / spread).clamp(max=3).exp()),
    }


def test_the_critic_by_hand():
    tensors = (torch.tensor(x) for x in ([0, 0], [0, 1], [1.0, 0.0], [1, 1], [1.0, 1.0]))
    critic = Critic(torch.zeros(2, 2), torch.zeros(2))
    log = TransitionLog(*tensors, 2, 2)
    critic.update(log, torch.full((2, 2), 0.5), GAMMA, 1.0)
    assert critic.q.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert critic.v.tolist() == [0.5, 0.0]
    assert behaviour_model(log, critic)[0].tolist() == [1.0, 0.0]  # advantages 1/2 and -1/2


def test_targets_by_hand():
    logged, generated = torch.tensor([1, 1, 1]), torch.tensor([2, 2, 2])
    better, worse = torch.tensor([0.5, 0.1, -0.2]), torch.tensor([0.1, 0.5, -0.1])
    target, weight = imitation_targets(better, worse, logged, generated)
    assert target.tolist() == [1, 2, 2]
    assert weight.tolist() == [2.0, 2.0, 0.0]


@pytest.mark.slow
def test_against_cloning_and_a_policy_gradient_without_a_constraint():
    """Higher returns than cloning in 6 of 8 seeds, than weighted cloning in 5, than free in 7.

    That is fewer than four of five: in two seeds the critic overrates states whose next actions
    are not logged, and the returns are near 0. Actions off the data are rarer in all eight.
    """
    seeds = range(8)
    policies = [arms(seed) for seed in seeds]
    returns = [{name: value(policy) for name, policy in p.items()} for p in policies]
    names = ("cloning", "weighted", "free")
    wins = {name: sum(row["a2pr"] > row[name] for row in returns) for name in names}
    shares = [
        [off_data(recorded(s), policies[s][name]) for name in ("a2pr", "free")] for s in seeds
    ]
    assert all(constrained < free for constrained, free in shares)
    assert wins == {"cloning": 6, "weighted": 5, "free": 7}
