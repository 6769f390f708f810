"""Numbers that are kept of each task: what they do to the advantages of its groups, one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from grupo.core.types import Group, Response, Rollout
from grupo.method import Method
from grupo.methods.dcpo_dynamic_clip import dcpo_dynamic_clip
from grupo.methods.otc_po import otc_po
from grupo.methods.rae import rae
from grupo.methods.spo_single_stream import spo_single_stream
from grupo.training.update.collate import collate
from tests.reference.assembled_numpy.formulas import z_score
from tests.reference.steps.collecting import make_history, make_tasks
from tests.reference.steps.resolving import assert_close
from tests.reference.steps_plain.task_statistics import (
    dcpo_advantages,
    otc_rewards,
    spiral_advantages,
    spo_values,
)

Steps = Sequence[Mapping[str, Sequence[tuple[float, Mapping[str, float]]]]]


def advantages(method: Method, steps: Steps) -> list[dict[str, list[float]]]:
    """The advantages of each step, by task; a rollout is (reward, reward terms)."""
    tasks = {task.key: task for task in make_tasks(4)}
    history = make_history(method)
    result = []
    for step, rewards in enumerate(steps):
        groups = [
            Group(tasks[key], tuple(_rollout(r, terms) for r, terms in rollouts))
            for key, rollouts in rewards.items()
        ]
        batch = collate(groups, lambda rows: torch.arange(len(rows)), history.statistics_of_task)
        batch = replace(batch, reward=batch.reward.double(), old_logp=batch.old_logp.double())
        values = iter(batch.with_advantage(method.advantage).advantage[:, 0].tolist())
        result.append({g.task.key: [next(values) for _ in g.rollouts] for g in groups})
        history.append_groups(step, groups)
    return result


def _rollout(reward: float, terms: Mapping[str, float]) -> Rollout:
    return Rollout((("?", Response((0,), (-1.0,))),), reward=reward, reward_terms=terms)


def plain_rollouts(rewards: Sequence[float]) -> list[tuple[float, Mapping[str, float]]]:
    """Rollouts without reward terms."""
    return [(r, {}) for r in rewards]


DCPO_GROUPS = {  # all groups of each task; some have equal rewards, the first one among them
    "0": ((1, 0, 0, 1), (1, 1, 1, 1), (1, 1, 0, 1), (0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 1, 0)),
    "1": ((0, 0, 0, 0), (0, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 1), (1, 1, 1, 1), (0, 1, 1, 1)),
}


def check_dcpo() -> None:
    """Compare the smoothed advantages; the method adds 1e-6 to standard deviations."""
    steps = [
        {key: plain_rollouts([*map(float, g[i])]) for key, g in DCPO_GROUPS.items()}
        for i in range(6)
    ]
    found = advantages(dcpo_dynamic_clip(), steps)
    for key, groups in DCPO_GROUPS.items():
        for step, expected in enumerate(dcpo_advantages(groups)):
            assert_close(found[step][key], expected, 1e-5)


OTC_CALLS = {
    "0": ((3, 2, 5), (4, 1, 2), (1, 3, 0), (2, 0, 6), (0, 1, 2), (5, 4, 3)),
    "1": ((2, 2, 4), (3, 5, 6), (0, 0, 0), (4, 4, 1), (3, 3, 2), (7, 3, 1)),
}
OTC_CORRECT = {
    "0": ((1, 0, 1), (1, 0, 0), (1, 1, 0), (0, 1, 1), (1, 1, 1), (0, 1, 0)),
    "1": ((0, 0, 0), (1, 1, 1), (0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)),
}


def check_otc() -> None:
    """Compare the advantages that follow from the fewest calls so far."""
    steps = []
    for i in range(6):
        steps.append(
            {
                key: [
                    (0.0, {"tool_calls": float(m), "correct": float(c)})
                    for m, c in zip(OTC_CALLS[key][i], OTC_CORRECT[key][i], strict=True)
                ]
                for key in OTC_CALLS
            }
        )
    found = advantages(otc_po(), steps)
    for key in OTC_CALLS:
        for step, rewards in enumerate(otc_rewards(OTC_CALLS[key], OTC_CORRECT[key], 4.0)):
            r = torch.tensor(rewards, dtype=torch.float64).numpy()
            assert_close(found[step][key], z_score(r, r * 0).tolist(), 1e-6)


def check_rae() -> None:
    """Compare the advantages of two roles, which have a baseline each."""
    rewards = {"0": (1.0, -1.0, 1.0, 0.5, 1.0, -1.0), "1": (-1.0, 1.0, -1.0, 0.0, 0.0, 1.0)}
    steps = [{key: plain_rollouts([r[i]]) for key, r in rewards.items()} for i in range(6)]
    found = advantages(rae(), steps)
    for key, r in rewards.items():
        assert_close([step[key][0] for step in found], spiral_advantages(r, 0.95))


SPO_REWARDS = {
    "0": (1.0, 0.0, 1.0, 1.0, 0.0, 1.0),
    "1": (0.0, 0.0, 0.5, 0.0, 1.0, 0.0),
    "2": (1.0, 1.0, 1.0, 0.25, 1.0, 0.0),
}


def check_single_stream() -> None:
    """Compare r - v, whitened over the step."""
    steps = [{key: plain_rollouts([r[i]]) for key, r in SPO_REWARDS.items()} for i in range(6)]
    found = advantages(spo_single_stream(), steps)
    values = {key: spo_values(r, 0.875) for key, r in SPO_REWARDS.items()}
    for i in range(6):
        raw = torch.tensor(
            [SPO_REWARDS[key][i] - values[key][i] for key in SPO_REWARDS], dtype=torch.float64
        ).numpy()
        ours = torch.tensor([found[i][key][0] for key in SPO_REWARDS], dtype=torch.float64).numpy()
        centred = raw - raw.mean()
        # whitening divides by one number, which the comparison of the update checks
        scale = (ours @ centred) / (centred @ centred)
        assert scale > 0
        assert_close(ours.tolist(), (scale * centred).tolist())


CHECKS: dict[str, Callable[[], None]] = {
    "dcpo_dynamic_clip": check_dcpo,
    "otc_po": check_otc,
    "rae": check_rae,
    "spo_single_stream: advantages": check_single_stream,
}
