import errno
import json
import os
import re
from pathlib import Path

import pytest
import torch

from grupo.core.batch import EMPTY_BATCH, Batch
from grupo.core.types import Group, Response, Rollout, Task
from grupo.distributed.base import SingleRank
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.storage.checkpoint import NoCheckpoint, SaveFailed
from grupo.tasks import ReasoningGym
from grupo.training.resume.run_folder import RunFolder
from grupo.training.start import create_trainer
from grupo.training.update.records import rollout_records
from grupo.util.errors import ConfigError
from tests.helpers.run_data import RUN_DATA
from tests.helpers.training_components import save_models
from tests.helpers.training_recipes import base

RECIPE = Recipe(
    CausalLM("model"),
    SingleTurn((RewardTerm("right", ExactMatch()),)),
    ReasoningGym("chain_sum", 50),
)
HALF = {"weights": {"w": torch.tensor([0.5])}}


@pytest.fixture
def run(tmp_path) -> RunFolder:
    run_folder, lock = RunFolder.create(tmp_path / "run", RECIPE)
    with lock:
        return run_folder


def test_a_run_opens_with_its_recipe(run):
    assert RunFolder.open(run.folder) == run
    assert run.recipe == RECIPE
    assert sorted(os.listdir(run.folder)) == ["lock", "recipe.json"]


def test_fingerprints_are_equal_for_equal_recipes_only(run, tmp_path):
    again, lock = RunFolder.create(tmp_path / "again", RECIPE)
    other, another_lock = RunFolder.create(tmp_path / "other", RECIPE.replace(max_steps=7))
    with lock, another_lock:
        first, second, third = (x.stored_recipe.fingerprint for x in (run, again, other))
        assert first == second != third


def test_a_run_does_not_continue_with_another_recipe(run):
    run.check_same_recipe(RECIPE)
    with pytest.raises(
        ConfigError, match=r"was begun with max_steps = 100, not 7. Resume it as it is"
    ):
        run.check_same_recipe(RECIPE.replace(max_steps=7))


def test_a_folder_of_a_run_killed_at_its_start_counts_as_empty(tmp_path):
    for name in ("lock", "tmp.1"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match="holds no run"):
        RunFolder.open(tmp_path)
    RunFolder.check_empty(tmp_path)
    run_folder, lock = RunFolder.create(tmp_path, RECIPE)
    with lock:
        assert sorted(os.listdir(run_folder.folder)) == ["lock", "recipe.json"]


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"exists\. Name another folder"):
        RunFolder.check_empty(tmp_path)
    with pytest.raises(ConfigError, match=r"exists\. Name another folder"):
        RunFolder.create(tmp_path, RECIPE)
    assert not (tmp_path / "recipe.json").exists()
    os.unlink(tmp_path / "notes.txt")
    with RunFolder.create(tmp_path, RECIPE)[1]:  # the failed attempt released the lock
        pass


def test_opening_a_run_for_reading_removes_nothing(run):
    unfinished = run.folder / "tmp.1"
    unfinished.touch()
    RunFolder.open(run.folder)
    assert unfinished.exists()
    with run.lock():
        assert not unfinished.exists()


def test_loading_truncates_the_journals_to_the_checkpoint(run):
    run.log(0, {"loss": 0.5}, [{"text": "a"}], [{"responses": [1]}])
    run.save(1, HALF, {**RUN_DATA, "counter": 1})
    before = [journal.path.read_bytes() for journal in run.journals.by_name.values()]
    run.log(1, {"loss": 0.25}, [{"text": "b"}, {"text": "c"}], [{"responses": [2]}])
    saved = run.load()
    assert (saved.step, saved.data["counter"]) == (1, 1)
    assert [journal.path.read_bytes() for journal in run.journals.by_name.values()] == before


def test_a_journal_without_lines_can_be_saved_and_restored(run):
    run.log(0, {"loss": 0.5}, [])
    run.save(1, HALF, RUN_DATA)
    run.load()
    assert [journal.length() > 0 for journal in run.journals.by_name.values()] == [
        True,
        False,
        False,
    ]


def test_a_run_without_checkpoint_restarts_with_empty_journals(run):
    run.log(0, {"loss": 0.5}, [{"text": "a"}])
    with pytest.raises(NoCheckpoint):
        run.load()
    assert (
        run.journals.metrics.length(),
        run.journals.by_name["rollouts"].length(),
    ) == (0, 0)


@pytest.mark.parametrize("journal", ["metrics", "rollouts"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_gives_one_clear_message(journal, run):
    path = run.folder / f"{journal}.jsonl"
    path.symlink_to("/dev/full")
    message = (
        f"Step 3 is not logged: {path}: No space left on device. Earlier checkpoints are intact."
        " Free space on this disk, then resume."
    )
    with pytest.raises(SaveFailed, match=f"^{re.escape(message)}$"):
        run.log(3, {"loss": 0.5}, [{"text": "a"}])


def test_a_folder_that_cannot_be_created_gives_one_clear_message(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SaveFailed, match=r"The run is not begun: .*/file: File exists"):
        RunFolder.create(tmp_path / "file" / "run", RECIPE)


class RanksOnFullDisk(SingleRank):
    def start_rank_report(self, file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))


def test_a_disk_error_before_the_first_step_does_not_call_a_new_run_resumed(tmp_path):
    save_models(tmp_path / "model")
    recipe = base(str(tmp_path / "model"))
    with pytest.raises(SaveFailed, match=r"^The run is not started: .*ranks.json: No space left"):
        create_trainer(recipe, tmp_path / "run", ranks=RanksOnFullDisk())


def rollout(text: str, length: int, **fields) -> Rollout:
    response = Response(tuple(range(length)), (0.0,) * length, text=text)
    return Rollout((("2 + 2 =", response),), **fields)


def test_every_sampled_rollout_has_a_record_with_its_mean_advantage():
    correct = rollout("4", 2, reward=1.0, reward_terms={"right": 1.0}, index=0)
    wrong = rollout("5", 3, reward=0.0, reward_terms={"right": 0.0}, index=2)
    broken = rollout("?", 1, error="it hung", index=1)
    task = Task("sum", "2 + 2 =", 4)
    batch = Batch.of(
        torch.tensor([1.0, 0.0], dtype=torch.float64),
        torch.tensor([0, 0]),
        rollout=torch.tensor([0, 1]),
        mask=torch.tensor([[True, True, False], [True, True, True]]),
        old_logp=torch.zeros(2, 3),
    ).with_advantage(lambda x, _: torch.tensor([[0.5, 1.0, 9.0], [-1.0, 0.0, 0.25]]))
    kept = Group(task, (correct, wrong))
    records = rollout_records(4, [Group(task, (correct, broken, wrong))], [kept], batch)
    values = [(line["text"], line["reward"], line["advantage"], line["error"]) for line in records]
    assert values[0] == ("4", 1.0, 0.75, "")  # (0.5 + 1.0) / 2: the 9 is masked
    assert values[1][2:] == (None, "it hung")
    assert values[2] == ("5", 0.0, -0.25, "")  # (-1.0 + 0.0 + 0.25) / 3
    common = {
        "step": 4,
        "task": "sum",
        "prompt": "2 + 2 =",
        "reference_answer": "4",
        "truncated": False,
    }
    assert all(line.items() >= common.items() for line in records)
    assert [line["length"] for line in records] == [2, 1, 3]


def test_the_journals_of_a_run_are_strict_json(run):
    run.log(1, {"loss": float("nan")}, [{"reward": float("inf")}])
    assert json.loads(run.journals.metrics.path.read_text()) == {
        "step": 1,
        "loss": "NaN",
    }
    assert json.loads(run.journals.by_name["rollouts"].path.read_text()) == {"reward": "Infinity"}


def test_turns_of_a_dialogue_are_kept_apart_in_its_record():
    task = Task("sum", "2 + 2 =", "4")
    first, second = (Response((1,), (0.0,), text=text) for text in ("look", "left"))
    dialogue = Rollout((("2 + 2 =", first), ("a wall", second)), 1.0)
    single = Rollout((("2 + 2 =", first),), 1.0)
    records = rollout_records(1, [Group(task, (dialogue, single))], [], EMPTY_BATCH)
    assert records[0]["turns"] == [{"text": "look"}, {"observation": "a wall", "text": "left"}]
    assert records[1]["turns"] == []
