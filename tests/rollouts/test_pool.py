import tracemalloc

import pytest
import torch

from grupo.core.types import Action, Rollout
from grupo.rollouts.pool import (
    CreditedRollout,
    RolloutPool,
    remove_unnamed_segments,
    verify_segments,
)
from grupo.storage import safetensors
from grupo.storage.atomic_files import write_new
from grupo.storage.manifest import InvalidCheckpoint
from grupo.storage.segments import SegmentFiles, SegmentsInMemory
from tests.helpers.media_prompts import random_media


def credited(number, prompt="?", length=2):
    action = Action((number,) * length, (-0.1,) * length, text=f"{number}", policy_version=number)
    rollout = Rollout(((prompt, action),), reward=0.5, reward_terms={"right": 1.0})
    return CreditedRollout(f"t{number}", "sums", rollout, ((-0.1,) * length,), ((0.3,) * length,))


def filled(pool, steps, per_step=2):
    for step in steps:
        rollouts = [credited(per_step * step + i) for i in range(per_step)]
        pool.append(step, pool.lines(rollouts), torch.full((per_step,), step + 1.0))
    return pool


@pytest.fixture(params=["memory", "files"])
def segments(request, tmp_path):
    return SegmentsInMemory() if request.param == "memory" else SegmentFiles(tmp_path)


def test_rollouts_come_back_with_their_numbers(segments):
    pool = filled(RolloutPool(10, segments), range(3))
    assert [pool.read(i) for i in range(6)] == [credited(i) for i in range(6)]
    assert pool.numbers.priority.tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert pool.numbers.step.tolist() == [0, 0, 1, 1, 2, 2]


def test_the_oldest_rollouts_leave_a_full_pool(segments):
    pool = filled(RolloutPool(3, segments), range(4))
    assert [pool.read(i).task_key for i in range(3)] == ["t5", "t6", "t7"]
    assert list(pool.written) == [2, 3]


def test_nothing_is_written_for_a_step_without_rollouts(segments):
    pool = RolloutPool(3, segments)
    pool.append(0, [], torch.zeros(0))
    assert (len(pool), pool.written) == (0, {})


def test_pictures_come_back(segments):
    prompt = ({"role": "user", "content": [{"type": "image", "image": random_media("image", 0)}]},)
    pool = RolloutPool(3, segments)
    pool.append(0, pool.lines([credited(0, prompt)]), torch.ones(1))
    assert pool.read(0).rollout.turns[0][0] == prompt


def test_a_restored_pool_reads_the_same_rollouts(tmp_path):
    pool = filled(RolloutPool(3, SegmentFiles(tmp_path)), range(4))
    restored = RolloutPool(3, SegmentFiles(tmp_path))
    restored.restore(pool.tensors())
    assert [restored.read(i) for i in range(3)] == [pool.read(i) for i in range(3)]
    assert restored.written == pool.written
    verify_segments(tmp_path, pool.tensors())


def save(folder, pool):
    folder.mkdir()
    write_new(folder / "pool.safetensors", safetensors.file_chunks(pool.tensors()))
    return folder


def test_segments_are_kept_while_a_checkpoint_names_them(tmp_path):
    pool = filled(RolloutPool(3, SegmentFiles(tmp_path)), range(2))
    saved = [save(tmp_path / "a", pool)]
    saved.append(save(tmp_path / "b", filled(pool, range(2, 5))))
    files = tmp_path / "pool"
    remove_unnamed_segments(tmp_path, saved)
    assert sorted(int(path.stem) for path in files.iterdir()) == [0, 1, 3, 4]
    remove_unnamed_segments(tmp_path, [*saved, tmp_path / "lost"])
    assert len([*files.iterdir()]) == 4
    remove_unnamed_segments(tmp_path, saved[1:])
    assert sorted(int(path.stem) for path in files.iterdir()) == [3, 4]


@pytest.mark.parametrize("damage", ["changed", "shorter", "lost"])
def test_a_damaged_segment_is_found(damage, tmp_path):
    pool = filled(RolloutPool(3, SegmentFiles(tmp_path)), range(3))
    path = tmp_path / "pool" / "00000002.jsonl"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"t5", b"t6") if damage == "changed" else content[:-1])
    if damage == "lost":
        path.unlink()
    with pytest.raises(InvalidCheckpoint, match="pool/00000002"):
        verify_segments(tmp_path, pool.tensors())


def test_a_rollout_takes_twenty_bytes_of_memory(tmp_path):
    pool = RolloutPool(1500, SegmentFiles(tmp_path))
    line = pool.lines([credited(0, length=200)])
    tracemalloc.start()
    for step in range(20):
        pool.append(step, line * 100, torch.ones(100))
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    tensors = (pool.priority, pool.step, pool.offset)
    assert len(pool) == 1500
    assert sum(x.untyped_storage().nbytes() for x in tensors) == 20 * 1500
    assert traced < 40 * 1500 < 1500 * len(line[0])
