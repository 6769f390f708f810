"""`grupo check`: any damaged byte of a run's files is reported, and no file is changed."""

import shutil
from pathlib import Path

import pytest

from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.tasks import ReasoningGym
from grupo.training.resume.run_check import RunChecker
from grupo.training.resume.run_folder import RunFolder
from grupo.training.stopping import run_summary
from tests.helpers.run_data import RUN_DATA, WEIGHTS
from tests.helpers.run_outcomes import files, flip_bit

RECIPE = Recipe(
    CausalLM("model"),
    SingleTurn((RewardTerm("right", ExactMatch()),)),
    ReasoningGym("chain_sum", 50),
    max_steps=2,
    save_every=1,
)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two steps with a checkpoint of each."""
    run, lock = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", RECIPE)
    with lock:
        for step in (1, 2):
            rollouts = [{"step": step, "text": text} for text in ("a", "b")]
            run.log(step, {"loss": 0.5}, rollouts, rollouts[:1])
            run.save(step, {"weights": WEIGHTS}, {**RUN_DATA, "finished": step == 2})
        run.write_summary(run_summary(RECIPE, 2, RUN_DATA))
    return run.folder


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished_run, tmp_path / "run")


def problems(run: Path) -> dict[str, str]:
    return {result.file: result.problem for result in RunChecker(run)().files if result.problem}


def test_every_file_of_an_intact_run_is_checked_and_none_is_changed(run):
    before = files(run)
    result = RunChecker(run)()
    assert result.is_intact
    assert {file.file for file in result.files} == set(before)
    assert result.resume_from == "step-00000002"
    assert files(run) == before


@pytest.mark.slow
def test_a_change_of_any_byte_of_any_file_is_reported(run):
    """Every byte of journals, summary and pointer; every 97th of the other files."""
    for name, content in files(run).items():
        is_small = name.endswith(("jsonl", "latest", "summary.json"))
        for at in {*range(0, len(content), 1 if is_small else 97), len(content) - 1}:
            changed = bytes([content[at] ^ (1 << at % 8)])
            (run / name).write_bytes(content[:at] + changed + content[at + 1 :])
            assert name in problems(run), (name, at)
        (run / name).write_bytes(content)
    assert problems(run) == {}


@pytest.mark.slow
def test_a_missing_file_is_reported(run):
    for name, content in files(run).items():
        if name not in ("summary.json", "recipe.json"):
            (run / name).unlink()
            expected = "manifest.json" if name.endswith("manifest.json") else name
            assert any(expected in file for file in problems(run)), name
            (run / name).write_bytes(content)


@pytest.mark.slow
def test_the_checkpoint_that_a_resumed_run_continues_from_is_named(run):
    flip_bit(run / "metrics.jsonl", -4)  # in the line of step 2
    result = RunChecker(run)()
    assert problems(run) == {
        "metrics.jsonl": "metrics.jsonl, line 2 (step 2): its bytes are not those that were written"
    }
    assert result.resume_from == "step-00000001"
    flip_bit(run / "metrics.jsonl", 3)
    assert RunChecker(run)().resume_from == ""


def test_a_run_with_a_damaged_recipe_cannot_be_resumed(run):
    flip_bit(run / "recipe.json")
    assert RunChecker(run)().resume_from == ""


def test_lines_after_the_last_checkpoint_are_noted(run):
    with (run / "rollouts.jsonl").open("ab") as file:
        file.write(b'{"torn')
    notes = {result.file: result.note for result in RunChecker(run)().files}
    assert notes["rollouts.jsonl"] == (
        "4 lines verified; 6 bytes after the last intact checkpoint, without a checksum"
    )


@pytest.mark.slow
def test_a_run_without_checkpoints_is_intact_only_if_it_never_saved(run):
    shutil.rmtree(run / "checkpoints")
    assert "its checkpoints are missing" in problems(run)["checkpoints"]
    for name in ("metrics", "rollouts", "responses"):
        (run / f"{name}.jsonl").unlink()
    (run / "summary.json").unlink()
    result = RunChecker(run)()
    assert result.is_intact
    assert result.resume_from == ""


def test_the_bytes_read_are_counted(run):
    counts: list[int] = []
    RunChecker(run, counts.append)()
    read = [size for name, size in ((n, len(c)) for n, c in files(run).items()) if "step-" in name]
    journals = [(run / f"{name}.jsonl").stat().st_size for name in ("metrics", "rollouts")]
    assert sum(counts) >= sum(journals) + max(read)
