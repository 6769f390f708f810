"""States of a disk after power loss: the old checkpoint or the new one, and resumable runs."""

import shutil
from dataclasses import dataclass
from random import Random

import pytest

from grupo.storage.checkpoint import NoCheckpoint
from grupo.storage.journal import Journal, JournalState
from tests.helpers import checkpoint_contents
from tests.helpers.power_loss import Disk, RecordingDisk, read_calls, tree_of, write_tree
from tests.helpers.resumed_runs import assert_same_outcome
from tests.helpers.trust_cases import SEED, scaled

pytestmark = pytest.mark.trust

NOTHING = -1
# (steps that are saved, steps whose saves are interrupted, checkpoints that are kept)
SCENARIOS = {
    "first saves": ((), (0, 1, 2), 2),
    "a first save and the same step again": ((), (0, 0), 2),
    "next saves": ((0, 1, 2), (3, 4), 2),
    "next saves that keep one": ((0, 1, 2), (3, 4), 1),
    "next saves that keep all": ((0, 1, 2), (3, 4), 9),
    "the same step again": ((0, 1, 2), (2, 2), 2),
}
STATES_OF_A_SCENARIO = 8000
JOURNAL_STATES = 1400
RUN_STATES = 600
RUN_RECIPES = ("grpo", "async", "tools")
STATES_OF_A_RUN_TEST = 10


@dataclass(frozen=True)
class Recording:
    """Saves of versions on a disk.

    Args:
        before: The files before.
        calls: The system calls of all saves.
        commits: For each save, its version and the number of calls after which it is visible; it
            is durable after one more.
        version: The version that was loaded before; NOTHING if there was none.
    """

    before: dict
    calls: list
    commits: list
    version: int

    def allowed_versions(self, num_calls: int) -> set[int]:
        """The versions that may be loaded if power is lost after this number of calls.

        Without a pointer, a checkpoint that verifies may be loaded before its save has ended.
        """
        durable, has_pointer = self.version, "run/latest" in self.before
        for version, commit in self.commits:
            if num_calls <= commit:
                return {durable, version} if num_calls == commit or not has_pointer else {durable}
            durable, has_pointer = version, True
        return {durable}

    def random_states(self, rng: Random, count: int):
        """Pairs of allowed versions and a random state, in the order of the calls."""
        disk, done = Disk(self.before), 0
        for num_calls in sorted(rng.choices(range(len(self.calls) + 1), k=count)):
            for call in self.calls[done:num_calls]:
                disk.do(*call)
            done = num_calls
            yield self.allowed_versions(num_calls), disk.random_state(rng)


def record_saves(root, steps, *, first_version: int, keep: int) -> Recording:
    """Save steps in the folder `root` / "run" and record the calls."""
    before, version = tree_of(root), loaded_version(root / "run")
    disk, commits = RecordingDisk(root), []
    for number, step in enumerate(steps):
        begin, new = len(disk.calls), first_version + number
        checkpoint_contents.save(root / "run", step, version=new, keep=keep, syscall=disk)
        renames = [n for n in range(begin, len(disk.calls)) if disk.calls[n][-1] == "run/latest"]
        commits.append((new, renames[-1] + 1))
        assert disk.calls[renames[-1] + 1] == ("fsync", "run")
    return Recording(before, disk.calls, commits, version)


def loaded_version(run) -> int:
    """The version of the checkpoint that is loaded; NOTHING if there is none."""
    try:
        return checkpoint_contents.version(checkpoint_contents.loaded(run))
    except NoCheckpoint:
        return NOTHING


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_old_checkpoint_or_the_new_one_survives_power_loss_twice(scenario, tmp_path):
    """The second loss interrupts the first save after the first loss."""
    old, steps, keep = SCENARIOS[scenario]
    rng, root = Random(f"{SEED}/{scenario}"), tmp_path / "root"
    root.mkdir()
    for step in old:
        checkpoint_contents.save(root / "run", step)
    saves = record_saves(root, steps, first_version=10, keep=keep)
    states, wanted = set(), scaled(STATES_OF_A_SCENARIO)
    while len(states) < wanted:
        for allowed, tree in saves.random_states(rng, 100):
            check_state(tree, allowed, root, states)
            if rng.random() < 0.1 and (root / "run").is_dir():
                again = record_saves(root, (7,), first_version=20, keep=keep)
                assert not list((root / "run").glob("tmp.*"))
                for twice_allowed, twice in again.random_states(rng, 20):
                    check_state(twice, twice_allowed, root, states)


@pytest.mark.parametrize("forgotten", ["file", "folder"])
def test_the_states_detect_a_save_without_fsync(forgotten, tmp_path):
    root, rng = tmp_path / "root", Random(SEED)
    root.mkdir()
    checkpoint_contents.save(root / "run", 1)
    saves = record_saves(root, (2,), first_version=10, keep=2)
    created = {call[1] for call in saves.calls if call[0] == "create"}
    disk, versions = Disk(saves.before), set()
    for call in saves.calls:
        if call[0] != "fsync" or (call[1] in created) != (forgotten == "file"):
            disk.do(*call)
    for _ in range(100):
        shutil.rmtree(root)
        write_tree(disk.random_state(rng), root)
        versions.add(loaded_version(root / "run"))
    assert saves.allowed_versions(len(saves.calls)) == {10}
    assert versions - {10}


def check_state(tree, allowed, root, states: set[int]) -> None:
    """Write a state unless it was checked, and check the version that is loaded."""
    shutil.rmtree(root)
    write_tree(tree, root)
    assert loaded_version(root / "run") in allowed
    states.add(hash(frozenset(tree.items())))


def test_a_journal_keeps_its_synced_lines(tmp_path):
    rng, states, wanted = Random(f"{SEED}/journal"), set(), scaled(JOURNAL_STATES)
    while len(states) < wanted:
        root = tmp_path / str(len(states))
        root.mkdir()
        disk = RecordingDisk(root)
        journal, durable = Journal(root / "metrics.jsonl", disk), [(0, b"")]
        for step in range(8):
            journal.append({"step": step, "text": "x" * rng.randint(1, 900)})
            if rng.random() < 0.5:
                journal.fsync()
                durable.append((len(disk.calls), journal.path.read_bytes()))
        model = Disk({})
        for num_calls, call in enumerate(disk.calls, 1):
            model.do(*call)
            synced = max((d for d in durable if d[0] <= num_calls), key=len_of_content)[1]
            tree = model.random_state(rng)
            content = tree.get("metrics.jsonl", b"")
            journal.path.write_bytes(content)
            Journal(journal.path).truncate(JournalState(length=len(synced)))
            assert journal.path.read_bytes() == synced
            states.add(hash(content))


def len_of_content(pair: tuple[int, bytes]) -> int:
    return len(pair[1])


@pytest.mark.parametrize("number", range(scaled(RUN_STATES // STATES_OF_A_RUN_TEST)))
def test_a_run_that_lost_power_ends_with_the_same_bits(number, training_process, tmp_path):
    recipe, rng = RUN_RECIPES[number % len(RUN_RECIPES)], Random(f"{SEED}/run/{number}")
    root, calls = tmp_path / "root", tmp_path / "calls.json"
    root.mkdir()
    assert training_process("train", root / "run", recipe=recipe, record=str(calls)).succeeded
    recording = Recording({}, read_calls(calls), [], NOTHING)
    for _, tree in recording.random_states(rng, STATES_OF_A_RUN_TEST):
        shutil.rmtree(root)
        write_tree(tree, root)
        assert_same_outcome(training_process, root / "run", recipe)
