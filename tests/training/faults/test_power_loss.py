"""Power loss at every call of a save leaves the old checkpoint or the new one, complete."""

import os
import shutil
from random import Random

import pytest

from grupo.storage import atomic_files
from grupo.storage.checkpoint import NoCheckpoint
from grupo.storage.journal import Journal, JournalState
from tests.helpers import checkpoint_contents
from tests.helpers.fast_cases import fast_cases
from tests.helpers.power_loss import Disk, RecordingDisk, tears, tree_of, write_tree

NOTHING = -1


def first(run, **disk) -> None:
    checkpoint_contents.save(run, 0, version=9, **disk)


def next_one(run, **disk) -> None:
    checkpoint_contents.save(run, 3, version=9, **disk)


def last_one(run, **disk) -> None:
    checkpoint_contents.save(run, 3, version=9, keep=1, **disk)


def same_step(run, **disk) -> None:
    checkpoint_contents.save(run, 2, version=9, **disk)


def loaded_version(run) -> int:
    """The version of the checkpoint that is loaded; NOTHING if there is none."""
    try:
        return checkpoint_contents.version(checkpoint_contents.loaded(run))
    except NoCheckpoint:
        return NOTHING


def states(before, calls, rng):
    """Pairs of a number of calls and a possible state of the disk after them, each state once."""
    disk = Disk(before)
    for done in range(len(calls) + 1):
        unique = {repr(sorted(t.items())): t for t in disk.after_power_loss(rng, 100)}
        yield from ((done, tree) for _, tree in sorted(unique.items()))
        if done < len(calls):
            disk.do(*calls[done])


def recorded(root, old, save):
    """The files at `root` after saving the steps `old` and part of another; the calls of `save`."""
    run = root / "run"
    for step in old:
        checkpoint_contents.save(run, step)
    if old:
        (run / "tmp.0").mkdir()
        (run / "tmp.0" / "data.json").write_bytes(b"unfinished")
    before, disk = tree_of(root), RecordingDisk(root)
    save(run, syscall=disk)
    return before, disk.calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "save"),
    fast_cases(
        1, [((0, 1, 2), same_step), ((), first), ((0, 1, 2), next_one), ((0, 1, 2), last_one)]
    ),
)
def test_the_old_checkpoint_or_the_new_one_survives_any_power_loss(old, save, tmp_path):
    (tmp_path / "root").mkdir()
    before, calls = recorded(tmp_path / "root", old, save)
    commit = next(n for n, call in enumerate(calls, 1) if call[-1] == "run/latest")
    assert calls[commit] == ("fsync", "run")
    versions, crashed = {"before": set(), "commit": set(), "after": set()}, tmp_path / "crashed"
    for number, (done, tree) in enumerate(states(before, calls, Random(0))):
        write_tree(tree, crashed)
        phase = "before" if done < commit else "commit" if done == commit else "after"
        versions[phase].add(loaded_version(crashed / "run"))
        if number % 8 == 0:
            save(crashed / "run", syscall=checkpoint_contents.unsynced)
            assert loaded_version(crashed / "run") == 9
            assert not list((crashed / "run").glob("tmp.*"))
        shutil.rmtree(crashed)
    last = old[-1] if old else NOTHING
    assert versions["before"] == (
        {last} if old else {NOTHING, 9}
    )  # without a pointer, a checkpoint that verifies
    assert versions["commit"] == ({last, 9} if old else {9})
    assert versions["after"] == {9}


@pytest.mark.parametrize("forgotten", ["file", "folder"])
def test_the_disk_model_detects_a_save_without_fsync(forgotten, tmp_path):
    (tmp_path / "root").mkdir()
    before, calls = recorded(tmp_path / "root", (1, 2), next_one)
    created = {call[1] for call in calls if call[0] == "create"}
    kept = [c for c in calls if c[0] != "fsync" or (c[1] in created) != (forgotten == "file")]
    disk, versions = Disk(before), set()
    for call in kept:
        disk.do(*call)
    for tree in disk.after_power_loss(Random(0), 100):  # the save had reported success
        write_tree(tree, tmp_path / "crashed")
        versions.add(loaded_version(tmp_path / "crashed" / "run"))
        shutil.rmtree(tmp_path / "crashed")
    assert versions - {9}


def test_an_atomic_write_leaves_the_old_text_or_the_new(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "recipe.json").write_text("old" * 400)
    before, disk = tree_of(tmp_path / "root"), RecordingDisk(tmp_path / "root")
    atomic_files.write_atomically(tmp_path / "root" / "recipe.json", "new" * 400, syscall=disk)
    seen = {tree["recipe.json"] for _, tree in states(before, disk.calls, Random(3))}
    assert seen == {b"old" * 400, b"new" * 400}


def test_a_journal_keeps_synced_lines_and_is_truncated_to_them(tmp_path):
    journal = Journal(tmp_path / "metrics.jsonl")
    for step in range(20):
        journal.append({"step": step, "text": "x" * 40})
    journal.fsync()
    synced = journal.path.read_bytes()
    journal.append(*({"step": step, "text": "y" * 300} for step in range(20, 26)))
    for torn in sorted(tears(b"", journal.path.read_bytes()[len(synced) :])):
        journal.path.write_bytes(synced + torn)
        journal.truncate(JournalState(length=len(synced)))
        assert journal.path.read_bytes() == synced


def test_a_journal_syncs_its_lines_and_its_name(tmp_path):
    disk = RecordingDisk(tmp_path)
    journal = Journal(tmp_path / "metrics.jsonl", disk)
    journal.append({"step": 0})
    journal.fsync()
    journal.truncate(JournalState())
    called = [call for call in disk.calls if call[0] != "create"]
    sync = [("fsync", "metrics.jsonl"), ("fsync", ".")]
    assert called[0] == ("write", "metrics.jsonl", b'{"step": 0}\n')
    assert called[1:3] == sync
    assert called[3:] == [("ftruncate", "metrics.jsonl", 0), *sync]
    assert os.path.getsize(journal.path) == 0
