"""Tables of image scores before and after training, checked by hand."""

from dataclasses import dataclass, replace

import pytest
import torch

from grupo.core.types import Group, Response, Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.image_generation import ImageGeneration
from grupo.report.image_samples import ImageSamples, compare_policies, comparison_table, diversity
from grupo.storage import tensor_text


def rollout(value, reward=0.0, **reward_terms):
    image = tensor_text.encode_tensor(torch.full((3, 2, 2), value, dtype=torch.uint8))
    return Rollout((("?", Response((), (), image=image)),), reward, reward_terms)


def level(task, rollout):
    return 0.0


ENV = ImageGeneration((RewardTerm("right", level), RewardTerm("neat", level, 0.0)))


def test_diversity_is_the_mean_pairwise_distance():
    # pixels 0, 51 and 255 are 0, 0.2 and 1: the distances are 0.2, 1 and 0.8
    assert diversity([rollout(x) for x in (0, 51, 255)]) == pytest.approx(2 / 3)
    assert diversity([rollout(7), rollout(7)]) == 0


def test_table_marks_untrained_reward_terms():
    bad = [Group(Task("k", "?"), (rollout(0, 0.0, right=0.0, neat=1.0),) * 2)]
    good = [Group(Task("k", "?"), (rollout(0, 0.5, right=0.5, neat=0.25),) * 2)]
    lines = comparison_table(ENV, ImageSamples(bad, bad), ImageSamples(good, bad)).splitlines()
    assert lines[0] == "| | before, SDE | before, ODE | after, SDE | after, ODE |"
    zero, half = "0.000 [0.000, 0.000]", "0.500 [0.500, 0.500]"
    one, quarter = "1.000 [1.000, 1.000]", "0.250 [0.250, 0.250]"
    assert lines[2:] == [
        f"| reward | {zero} | {zero} | {half} | {zero} |",
        f"| right | {zero} | {zero} | {half} | {zero} |",
        f"| neat, not trained | {one} | {one} | {quarter} | {one} |",
        f"| diversity | {zero} | {zero} | {zero} | {zero} |",
    ]


def test_failed_images_are_left_out_and_counted():
    failed = replace(rollout(0), reward=float("nan"), error="timeout")
    good = rollout(0, 0.5, right=0.5, neat=0.0)
    groups = [Group(Task("k", "?"), (good, failed, good)), Group(Task("l", "?"), (failed,))]
    samples = ImageSamples(groups, groups)
    lines = comparison_table(ENV, samples, samples).splitlines()
    assert lines[2] == f"| reward {'| 0.500 [0.500, 0.500] ' * 4}|"
    assert lines[-1] == "8 images could not be scored and are left out."


@dataclass(frozen=True)
class GreyPolicy:
    """Generates images of one grey value."""

    grey: int

    def actor(self, key):
        return self

    def with_sampling(self, temperature=1.0, top_k=0):
        return self

    def fork(self, *label):
        return self

    async def __call__(self, rollout_, observation):
        return rollout(self.grey).turns[0][1]


def test_images_and_table_are_written(tmp_path):
    pytest.importorskip("PIL")
    before, after = GreyPolicy(0), GreyPolicy(255)
    table = compare_policies(before, after, ENV, [Task("k", "?")], tmp_path)
    assert (tmp_path / "table.md").read_text() == table
    assert {path.name for path in tmp_path.iterdir()} == {"before.png", "after.png", "table.md"}
    assert (tmp_path / "before.png").read_bytes() != (tmp_path / "after.png").read_bytes()
