"""What is said of drawings before and after, by hand."""

from dataclasses import dataclass, replace

import pytest
import torch

from grupo.core.types import Action, Group, Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.report.image_samples import ImageSamples, compare_policies, comparison_table, diversity
from grupo.storage import tensor_text


def rollout(value, reward=0.0, **parts):
    made = tensor_text.encode_tensor(torch.full((3, 2, 2), value, dtype=torch.uint8))
    return Rollout((("?", Action((), (), image=made)),), reward, parts)


def level(task, rollout):
    return 0.0


WORLD = ImageGeneration((RewardTerm("right", level), RewardTerm("neat", level, 0.0)))


def test_diversity_is_how_far_pictures_lie_apart():
    # of 0, 51 and 255, which are 0, .2 and 1: pairs .2, 1 and .8
    assert diversity([rollout(x) for x in (0, 51, 255)]) == pytest.approx(2 / 3)
    assert diversity([rollout(7), rollout(7)]) == 0


def test_a_table_says_what_was_not_trained():
    bad = [Group(Task("k", "?"), (rollout(0, 0.0, right=0.0, neat=1.0),) * 2)]
    good = [Group(Task("k", "?"), (rollout(0, 0.5, right=0.5, neat=0.25),) * 2)]
    lines = comparison_table(WORLD, ImageSamples(bad, bad), ImageSamples(good, bad)).splitlines()
    assert lines[0] == "| | before, SDE | before, ODE | after, SDE | after, ODE |"
    none, half = "0.000 [0.000, 0.000]", "0.500 [0.500, 0.500]"
    one, quarter = "1.000 [1.000, 1.000]", "0.250 [0.250, 0.250]"
    assert lines[2:] == [
        f"| reward | {none} | {none} | {half} | {none} |",
        f"| right | {none} | {none} | {half} | {none} |",
        f"| neat, not trained | {one} | {one} | {quarter} | {one} |",
        f"| diversity | {none} | {none} | {none} | {none} |",
    ]


def test_what_could_not_be_judged_is_left_out_and_counted():
    lost = replace(rollout(0), reward=float("nan"), error="the judge slept")
    good = rollout(0, 0.5, right=0.5, neat=0.0)
    some = [Group(Task("k", "?"), (good, lost, good)), Group(Task("l", "?"), (lost,))]
    lines = comparison_table(WORLD, ImageSamples(some, some), ImageSamples(some, some)).splitlines()
    assert lines[2] == f"| reward {'| 0.500 [0.500, 0.500] ' * 4}|"
    assert lines[-1] == "8 pictures could not be judged and are left out."


@dataclass(frozen=True)
class Painter:
    """Paints every picture in one grey."""

    grey: int

    def act(self, key):
        return self

    def at(self, temperature=1.0, top_k=0):
        return self

    def fork(self, *label):
        return self

    async def __call__(self, rollout_, seen):
        return rollout(self.grey).turns[0][1]


def test_pictures_and_a_table_are_written(tmp_path):
    pytest.importorskip("PIL")
    told = compare_policies(Painter(0), Painter(255), WORLD, [Task("k", "?")], tmp_path)
    assert (tmp_path / "table.md").read_text() == told
    assert {path.name for path in tmp_path.iterdir()} == {"before.png", "after.png", "table.md"}
    assert (tmp_path / "before.png").read_bytes() != (tmp_path / "after.png").read_bytes()
