"""`--model x.gguf` in every command that takes a model."""

import json
from pathlib import Path

import gguf
import pytest
from pyarrow import parquet

from grupo.config.recipe_files import load_recipe_file
from grupo.recipe import Recipe
from grupo.training.resume.run_folder import RunFolder
from grupo.util.user_paths import models_dir
from tests.helpers.command_line import Command, run_command
from tests.helpers.in_process_runs import runs_in_process
from tests.helpers.tiny_gguf import write_gguf

REWARDS = """
def digits(completions, **columns):
    return [float(sum(map(str.isdigit, text))) for text in completions]
"""
RECIPE = """
tasks = "tasks.jsonl"
eval_tasks = 2
method = "grpo(group_size=4, kl_coef=0.0)"
max_steps = 1
prompts_per_step = 2
policy = {model = "x.gguf", max_new_tokens = 4}
env = {rewards = [{name = "digits", fn = "rewards.py:digits"}]}
"""
SMALL = ("--policy.max-new-tokens", "4", "--prompts-per-step", "2", "--steps", "1")
TRAINED = ("--model", "x.gguf", "--tasks", "tasks.jsonl", "--reward", "rewards.py:digits")
NOTE = "x.gguf holds weights rounded to 8 bits (Q8_0): it is converted to float32, once, in "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file, tasks, rewards and a recipe."""
    folder = tmp_path_factory.mktemp("user")
    write_gguf(folder / "x.gguf", kind=gguf.GGMLQuantizationType.Q8_0)
    rows = {
        "tasks": [{"prompt": f"the {i}", "answer": str(i)} for i in range(8)],
        "demonstrations": [{"prompt": f"the {i}", "completion": str(i)} for i in range(8)],
        "pairs": [{"prompt": f"the {i}", "chosen": "12", "rejected": "a"} for i in range(8)],
    }
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    (folder / "rewards.py").write_text(REWARDS)
    (folder / "recipe.toml").write_text(RECIPE)
    return folder


@pytest.fixture
def grupo(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run a command line in the folder, whose cache all tests share."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GRUPO_HOME", str(folder / "home"))
    return run_command(capsys)


def recipe_of(run: Path | str) -> Recipe:
    return RunFolder.open(Path(run)).recipe


def converted() -> Path:
    (path,) = models_dir().iterdir()
    return path


def test_a_dry_run_converts_the_file_and_says_so_once(grupo, monkeypatch, tmp_path):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    code, out, err = grupo("train", *TRAINED, *SMALL, "--dry-run")
    assert code == 0
    assert "CausalLM(model='x.gguf'" in out or 'model = "x.gguf"' in out
    assert err.count(f"{NOTE}{converted()}\n") == 1
    assert "memory, estimated" in err
    code, _, err = grupo("train", *TRAINED, *SMALL, "--dry-run")
    assert code == 0
    assert NOTE not in err


def test_a_run_is_trained_resumed_evaluated_and_exported(grupo, tmp_path):
    run, export = str(tmp_path / "run"), str(tmp_path / "export")
    assert grupo("train", *TRAINED, *SMALL, "--run", run)[0] == 0
    assert recipe_of(run).policy.model == "x.gguf"
    assert grupo("resume", run, "--steps", "2")[0] == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 2
    assert grupo("eval", run, "--attempts", "2")[0] == 0
    assert grupo("survey", run, "--out", str(tmp_path / "run.parquet"))[0] == 0
    assert grupo("export", run, export)[0] == 0
    assert "Trained from a local model" in (tmp_path / "export" / "README.md").read_text()
    assert grupo("eval", "--model", export, *TRAINED[2:], "--attempts", "2")[0] == 0


@pytest.mark.slow
def test_a_run_starts_from_a_run(grupo, tmp_path):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert grupo("train", *TRAINED, *SMALL, "--policy.lora", "Lora(2)", "--run", first)[0] == 0
    assert grupo("train", "--model", first, *TRAINED[2:], *SMALL, "--run", second)[0] == 0
    assert recipe_of(second).policy.model == "x.gguf"


@pytest.mark.slow
def test_exported_adapters_are_evaluated(grupo, tmp_path):
    run, adapters = str(tmp_path / "run"), str(tmp_path / "adapters")
    assert grupo("train", *TRAINED, *SMALL, "--policy.lora", "Lora(2)", "--run", run)[0] == 0
    assert grupo("export", run, adapters, "--separate-adapters")[0] == 0
    assert grupo("eval", "--model", adapters, *TRAINED[2:], "--attempts", "2")[0] == 0


def test_the_model_itself_is_evaluated_and_surveyed(grupo, tmp_path):
    small = ("--attempts", "2", "--policy.max-new-tokens", "4")
    code, out, _ = grupo("eval", *TRAINED, *small, "--json")
    assert code == 0
    assert 0 <= json.loads(out)["sampled"] <= 1
    file = tmp_path / "survey.parquet"
    assert grupo("survey", *TRAINED, *small, "--out", str(file))[0] == 0
    table = parquet.read_table(file)
    assert len(table) > 0
    assert b"x.gguf" in table.schema.metadata.values() or "x.gguf" in str(table.schema.metadata)


@pytest.mark.parametrize(("method", "rows"), [("sft", "demonstrations"), ("dpo", "pairs")])
def test_given_answers_are_learned_from(grupo, tmp_path, method, rows):
    arguments = ("--method", method, "--model", "x.gguf", "--tasks", f"{rows}.jsonl", *SMALL)
    assert grupo("train", *arguments, "--run", str(tmp_path / "run"))[0] == 0
    assert recipe_of(tmp_path / "run").policy.model == "x.gguf"


def test_a_recipe_file_names_it(grupo, tmp_path):
    assert load_recipe_file("recipe.toml").policy.model == "x.gguf"
    assert grupo("train", "recipe.toml", "--run", str(tmp_path / "run"))[0] == 0
    assert recipe_of(tmp_path / "run").policy.model == "x.gguf"


@pytest.mark.slow
def test_a_comparison_trains_it(grupo, tmp_path):
    budget = ("--budget", "steps=1", "--seeds", "1", "--out", str(tmp_path / "compared"))
    methods = ("--method", "grpo(group_size=2)", "--method", "dr_grpo(group_size=2, max_length=4)")
    with runs_in_process():
        code, _, err = grupo("compare", *TRAINED, *methods, *budget, *SMALL[:4])
    assert code == 0, err
    recipes = [recipe_of(path.parent) for path in tmp_path.rglob("recipe.json")]
    assert [recipe.policy.model for recipe in recipes] == ["x.gguf", "x.gguf"]


def test_a_server_gets_the_folder(grupo):
    code, out, _ = grupo("serve", "x.gguf", "--dry-run")
    assert code == 0
    assert f"--model {converted()} " in out


def test_the_script_of_a_job_names_the_file_which_each_machine_converts(grupo):
    arguments = ("launch", "slurm", "recipe.toml", "--run", "r", "--nodes", "2", "--servers", "1")
    code, out, _ = grupo(*arguments)
    assert code == 0
    assert "grupo serve x.gguf " in out


@pytest.mark.slow
def test_a_pipeline_starts_from_it(grupo, tmp_path):
    stages = [f'[[stages]]\nname = "{name}"\nrecipe = "recipe.toml"\n' for name in ("a", "b")]
    Path("stages.toml").write_text("\n".join(stages))
    code, _, err = grupo("train", "stages.toml", "--run", str(tmp_path / "stages"))
    assert code == 0, err
    models = [recipe_of(path.parent).policy.model for path in tmp_path.rglob("recipe.json")]
    assert models == ["x.gguf", "x.gguf"]


def test_a_damaged_file_ends_every_command_in_one_message(grupo, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    model = ("--model", str(tmp_path / "bad.gguf"), *TRAINED[2:])
    budget = ("--method", "grpo", "--budget", "steps=1", "--out", str(tmp_path / "compared"))
    for arguments in (
        ("train", *model, "--run", str(tmp_path / "run")),
        ("train", *model, "--dry-run"),
        ("eval", *model),
        ("survey", *model, "--out", str(tmp_path / "a.parquet")),
        ("compare", *model, *budget),
        ("serve", str(tmp_path / "bad.gguf"), "--dry-run"),
    ):
        code, out, err = grupo(*arguments)
        assert (code, out) == (2, ""), arguments
        assert "bad.gguf': its 4 bytes end within its header: it is cut off" in err
        assert err.count("\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["bad.gguf"]
