"""Nine points far apart in a square: an archive against independent samples.

The score of nine points is the smallest distance between two of them; 1/2, the grid of three by
three, is the best that is known. The mutator is a toy: no model, but random edits of the parents
that the prompt shows, and random points without parents. No program is executed: the answer is the
list of points. All arms evaluate as many lists. `elites` keeps the best list of each cell of a grid
over two measures. `best only` keeps one list, which random edits improve. `independent` shows no
parents. The arm `known` answers with the grid: the upper bound, which must win first.

Named before the first run of these seeds: `best`, the score of the winner, evaluated anew, of
`elites` and of `best only`, each minus that of `independent`, expected above 0, by the exact
sequential sign-flip test with looks at 8, 12 and 16 pairs and an error of 5 % for both together;
and `best` of `elites` minus that of `best only` by the same test. `coverage` and `qd` are those of
the grid over all lists of a run.

python recipes/guidance/points_in_square.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import asyncio
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from grupo.compare.sequential_design import SequentialDesign
from grupo.core.elites import Axis, Elites
from grupo.core.types import Group, Observation, Response, Rollout, Task
from grupo.envs import PointsInSquare, PrintedValue, RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.rewards import FunctionReward
from grupo.rollouts.history import History
from grupo.rollouts.samplers import Evolved, GroupSampler, Sampler
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key, make_rng

COUNT, GROUP_SIZE, STEPS = 9, 8, 500  # points; evaluations in a step, and steps
TERM, MARK = "points", "|"  # the reward term; the text before a parent
REWARD = PrintedValue(PointsInSquare(COUNT))
CELLS = (Axis(f"{TERM}/spread", 0.2, 0.6, 8), Axis(f"{TERM}/edge", 0.0, 1.0, 10))
GRID = Elites(CELLS)
TASK = Task("points", "")
KNOWN = [[x / 2, y / 2] for x in range(3) for y in range(3)]
SHOWN = {"score_text": "", "parent_text": MARK, "instruction": ""}
GROUP = GroupSampler(GROUP_SIZE)
BASELINE, BEST_ONLY, ELITES, BOUND = "independent", "best only", "elites", "known"
METRICS = ("best", "coverage", "qd")
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
Points = list[list[float]]


def random_point(rng: random.Random) -> list[float]:
    """A point of the square, with three decimal places."""
    return [round(rng.random(), 3), round(rng.random(), 3)]


def moved(point: Sequence[float], rng: random.Random) -> list[float]:
    """The point after a step of 0.05 in standard deviation, within the square."""
    return [round(min(1.0, max(0.0, x + rng.gauss(0.0, 0.05))), 3) for x in point]


def edited(parents: Sequence[Points], rng: random.Random) -> Points:
    """The last parent with one other point: moved, of another parent, or drawn anew."""
    *others, points = parents
    index = rng.randrange(COUNT)
    kind = rng.choice(("moved", "moved", "other", "new"))
    new_point = random_point(rng)
    if kind == "moved":
        new_point = moved(points[index], rng)
    elif kind == "other" and others:
        new_point = others[0][index]
    return [*points[:index], new_point, *points[index + 1 :]]


@dataclass(frozen=True)
class RandomEdits:
    """An actor whose answer is a list of points: an edit of the parents in the prompt.

    Args:
        key: The random stream.
        known: Answers with the grid of three by three.
    """

    key: int
    known: bool = False

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        parents = [json.loads(text) for text in str(observation).split(MARK)[1:]]
        rng = make_rng(self.key, "edit")
        points = edited(parents, rng) if parents else [random_point(rng) for _ in range(COUNT)]
        text = json.dumps(KNOWN if self.known else points)
        return Response((text,), (0.0,), text=text, rng_key=self.key)

    def fork(self, *label: object) -> "RandomEdits":
        return replace(self, key=derive_key(self.key, *label))

    def rng(self, *label: object) -> random.Random:
        return make_rng(self.key, *label)


def points_score(task: Task, rollout: Rollout) -> Mapping[str, float]:
    """The score and the measures of the list in an answer."""
    return REWARD.score_output(rollout.text)


ENV = SingleTurn((RewardTerm(TERM, FunctionReward(points_score)),))


async def collected(sampler: Sampler, task: Task, actor: Any) -> Group:
    """The group of a step."""
    return await sampler(task, ENV, actor)


def run(sampler: Sampler, known: bool, seed: int, steps: int = STEPS) -> Metrics:
    """The score of the best list, and the coverage and QD score of the grid over all lists.

    Args:
        sampler: Shows parents, or none.
        known: Whether the answers are the best that is known.
        seed: Draws all random numbers.
        steps: Number of groups.
    """
    history = History()
    actor: Any = RandomEdits(derive_key(0, "points", seed), known)
    for step in range(steps):
        task = history.with_replays(TASK)
        group = asyncio.run(collected(sampler, task, actor.fork(step)))
        history.append_groups(step, [group], (GRID, Elites()))
    archive = history.with_replays(TASK).replays
    winner = max(archive, key=lambda rollout: rollout.reward)
    anew = points_score(TASK, winner)["score"]
    return {"best": anew, "coverage": GRID.coverage(archive), "qd": GRID.qd_score(archive)}


ARMS = {
    BASELINE: partial(run, GROUP, False),
    BEST_ONLY: partial(run, Evolved(GROUP, **SHOWN), False),
    ELITES: partial(run, Evolved(GROUP, cells=CELLS, **SHOWN), False),
    BOUND: partial(run, GROUP, True),
}


def tables(runs: Mapping[str, Sequence[Metrics]]) -> list[str]:
    """The means, and the verdicts of both tests."""
    tested = {name: runs[name] for name in (BASELINE, BEST_ONLY, ELITES)}
    archives = {name: runs[name] for name in (BEST_ONLY, ELITES)}
    return [
        paired_table(runs, METRICS, BASELINE),
        sequential_table(tested, "best", BASELINE, DESIGN),
        sequential_table(archives, "best", BEST_ONLY, DESIGN),
    ]


def main(file: str, first_seed: str = "0", end: str = "16") -> None:
    """Run what is missing in the file and print the tables."""
    runs = stored_runs(Path(file), ARMS, range(int(first_seed), int(end)))
    print("\n\n".join(tables(runs)))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
