import tracemalloc

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.rollouts.replay_buffer import (
    ReplayBuffer,
    StoredRollout,
    remove_unreferenced_segments,
    verify_referenced_segments,
)
from grupo.storage import safetensors
from grupo.storage.atomic_files import write_new
from grupo.storage.manifest import InvalidCheckpoint
from grupo.storage.segments import SegmentFiles, SegmentsInMemory
from tests.helpers.media_prompts import random_media


def stored(number, prompt="?", length=2):
    response = Response(
        (number,) * length, (-0.1,) * length, text=f"{number}", policy_version=number
    )
    rollout = Rollout(((prompt, response),), reward=0.5, reward_terms={"right": 1.0})
    return StoredRollout(f"t{number}", "sums", rollout, ((-0.1,) * length,), ((0.3,) * length,))


def filled(buffer, steps, per_step=2):
    for step in steps:
        rollouts = [stored(per_step * step + i) for i in range(per_step)]
        buffer.append(step, buffer.to_lines(rollouts), torch.full((per_step,), step + 1.0))
    return buffer


@pytest.fixture(params=["memory", "files"])
def segments(request, tmp_path):
    return SegmentsInMemory() if request.param == "memory" else SegmentFiles(tmp_path)


def test_rollouts_come_back_with_their_numbers(segments):
    buffer = filled(ReplayBuffer(10, segments), range(3))
    assert [buffer.read(i) for i in range(6)] == [stored(i) for i in range(6)]
    assert buffer.priorities_and_steps.priority.tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert buffer.priorities_and_steps.step.tolist() == [0, 0, 1, 1, 2, 2]


def test_the_oldest_rollouts_leave_a_full_pool(segments):
    buffer = filled(ReplayBuffer(3, segments), range(4))
    assert [buffer.read(i).task_key for i in range(3)] == ["t5", "t6", "t7"]
    assert list(buffer.segment_checksums) == [2, 3]


def test_nothing_is_written_for_a_step_without_rollouts(segments):
    buffer = ReplayBuffer(3, segments)
    buffer.append(0, [], torch.zeros(0))
    assert (len(buffer), buffer.segment_checksums) == (0, {})


def test_pictures_come_back(segments):
    prompt = ({"role": "user", "content": [{"type": "image", "image": random_media("image", 0)}]},)
    buffer = ReplayBuffer(3, segments)
    buffer.append(0, buffer.to_lines([stored(0, prompt)]), torch.ones(1))
    assert buffer.read(0).rollout.turns[0][0] == prompt


def test_a_restored_pool_reads_the_same_rollouts(tmp_path):
    buffer = filled(ReplayBuffer(3, SegmentFiles(tmp_path)), range(4))
    restored = ReplayBuffer(3, SegmentFiles(tmp_path))
    restored.restore(buffer.tensors())
    assert [restored.read(i) for i in range(3)] == [buffer.read(i) for i in range(3)]
    assert restored.segment_checksums == buffer.segment_checksums
    verify_referenced_segments(tmp_path, buffer.tensors())


def save(folder, buffer):
    folder.mkdir()
    write_new(folder / "replay_buffer.safetensors", safetensors.file_chunks(buffer.tensors()))
    return folder


def test_segments_are_kept_while_a_checkpoint_names_them(tmp_path):
    buffer = filled(ReplayBuffer(3, SegmentFiles(tmp_path)), range(2))
    saved = [save(tmp_path / "a", buffer)]
    saved.append(save(tmp_path / "b", filled(buffer, range(2, 5))))
    files = tmp_path / "replay_buffer"
    remove_unreferenced_segments(tmp_path, saved)
    assert sorted(int(path.stem) for path in files.iterdir()) == [0, 1, 3, 4]
    remove_unreferenced_segments(tmp_path, [*saved, tmp_path / "lost"])
    assert len([*files.iterdir()]) == 4
    remove_unreferenced_segments(tmp_path, saved[1:])
    assert sorted(int(path.stem) for path in files.iterdir()) == [3, 4]


@pytest.mark.parametrize("damage", ["changed", "shorter", "lost"])
def test_a_damaged_segment_is_found(damage, tmp_path):
    buffer = filled(ReplayBuffer(3, SegmentFiles(tmp_path)), range(3))
    path = tmp_path / "replay_buffer" / "00000002.jsonl"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"t5", b"t6") if damage == "changed" else content[:-1])
    if damage == "lost":
        path.unlink()
    with pytest.raises(InvalidCheckpoint, match="replay_buffer/00000002"):
        verify_referenced_segments(tmp_path, buffer.tensors())


def test_a_rollout_takes_twenty_bytes_of_memory(tmp_path):
    buffer = ReplayBuffer(1500, SegmentFiles(tmp_path))
    line = buffer.to_lines([stored(0, length=200)])
    tracemalloc.start()
    for step in range(20):
        buffer.append(step, line * 100, torch.ones(100))
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    tensors = (buffer.priority, buffer.step, buffer.offset)
    assert len(buffer) == 1500
    assert sum(x.untyped_storage().nbytes() for x in tensors) == 20 * 1500
    assert traced < 40 * 1500 < 1500 * len(line[0])
