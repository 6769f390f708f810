"""A2PR on logs of walks: actions that were not logged, in `docs/small_claims.md`.

A walk in a grid of 7 x 7 ends in a corner, with reward 1. Two thirds of the logged walks are
random. Networks read the row and the column of a state, so that the generator of A2PR, which
imitates the better actions of the log, proposes actions in states where the log has them not.

Named before the first run: `return`, the exact discounted return from a random start, of A2PR,
minus that of A2PR whose generator may propose logged actions alone, by the exact sequential
sign-flip test with looks at 8, 12 and 16 logs; it is to be greater. `proposed` is the probability
that the generator gives to actions that the log does not have in their state, before they are
excluded, and `off_log` that of the policy.

python recipes/small_claims/logged_walks.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.offline.a2pr import Networks, TransitionLog, fit_a2pr
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs

SIDE, LIMIT, GAMMA, WALKS = 7, 20, 0.95, 9
STATES, GOAL = SIDE * SIDE, SIDE * SIDE - 1
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))
TOWARDS = (1, 3)  # moves towards the goal
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


def moved(state: int, action: int) -> int:
    """The state after an action; a wall leaves it as it is.

    >>> moved(0, 1), moved(0, 0)
    (5, 0)
    """
    x, y = state % SIDE + MOVES[action][0], state // SIDE + MOVES[action][1]
    return y * SIDE + x if 0 <= x < SIDE and 0 <= y < SIDE else state


def recorded(seed: int) -> TransitionLog:
    """Walks from random places, of which a third goes to the goal with 70 % of its actions."""
    rng = Random(seed)
    rows = []
    for number in range(WALKS):
        state = rng.randrange(GOAL)
        for _ in range(LIMIT):
            good = [a for a in TOWARDS if moved(state, a) != state]
            towards = number % 3 == 0 and rng.random() < 0.7
            action = rng.choice(good) if towards else rng.randrange(len(MOVES))
            there = moved(state, action)
            rows.append((state, action, float(there == GOAL), there, float(there == GOAL)))
            state = there
            if state == GOAL:
                break
    state, action, reward, next_state, ends = (torch.tensor(x) for x in zip(*rows, strict=True))
    return TransitionLog(
        state, action, reward.double(), next_state, ends.double(), _features(), len(MOVES)
    )


def _features() -> Tensor:
    """Row and column of each state, as one-hot vectors."""
    one_hot = torch.eye(SIDE, dtype=torch.float64)
    return torch.cat([one_hot.repeat_interleave(SIDE, 0), one_hot.repeat(SIDE, 1)], 1)


def value(policy: Tensor) -> float:
    """Exact discounted return of a policy (S, A) from a random start, in `LIMIT` actions."""
    v = torch.zeros(STATES, dtype=torch.float64)
    there = torch.tensor([[moved(s, a) for a in range(len(MOVES))] for s in range(STATES)])
    arrives = (there == GOAL).double()
    for _ in range(LIMIT):
        v = (policy * (arrives + (1 - arrives) * GAMMA * v[there])).sum(-1)
    return v[:GOAL].mean().item()


@torch.no_grad()
def measured(log: TransitionLog, networks: Networks) -> Metrics:
    """Return of the policy, and shares of actions of the generator and the policy off the log."""
    policy = networks.policy(log.features).softmax(-1)
    generator = networks.generator(log.features).softmax(-1)
    off_log = (~log.logged)[log.state]
    return {
        "return": value(policy),
        "proposed": (generator[log.state] * off_log).sum(-1).mean().item(),
        "off_log": (policy[log.state] * off_log).sum(-1).mean().item(),
    }


def cloning(seed: int) -> Metrics:
    """The frequencies of the log; uniform in states without a log."""
    log = recorded(seed)
    count = log.counts(torch.ones_like(log.reward)) + 1e-9
    return {"return": value(count / count.sum(-1, keepdim=True)), "proposed": 0.0, "off_log": 0.0}


def trained(seed: int, **options: Tensor | float) -> Metrics:
    """A2PR on the log of a seed."""
    log = recorded(seed)
    return measured(log, fit_a2pr(log, gamma=GAMMA, seed=seed, **options))


BASELINE, METRICS = "logged actions alone", ("return", "proposed", "off_log")
ARMS: Mapping[str, Callable[[int], Metrics]] = {
    "cloning": cloning,
    "no constraint": lambda seed: trained(seed, imitation_weight=0.0),
    BASELINE: lambda seed: trained(seed, allowed=recorded(seed).logged),
    "A2PR": trained,
}


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    runs = stored_runs(file, ARMS, seeds)
    print(paired_table(runs, METRICS, BASELINE))
    tested = {name: runs[name] for name in (BASELINE, "A2PR")}
    print(sequential_table(tested, "return", BASELINE, DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
