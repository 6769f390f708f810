"""Files of a data set that name files elsewhere: none of them is read."""

import json
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from grupo.tasks import DatasetTasks
from grupo.tasks.tables.dataset_references import check_hub_files
from grupo.util.errors import ConfigError

ROWS = [{"prompt": "1 + 1 =", "answer": "2"}]
SECRET = [{"prompt": "a file of the user", "answer": "3"}]


def write_rows(path: Path, rows=ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def prompts(folder: Path) -> list[object]:
    return [task.prompt for task in DatasetTasks(str(folder)).load()]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "secret.jsonl", SECRET)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "data" / "train.jsonl").parent


def write_card(folder: Path, settings: str) -> None:
    config = f"configs:\n- config_name: default\n  {settings}\n"
    (folder / "README.md").write_text(f"---\n{config}---\nText.\n")


def test_a_card_names_files_of_its_folder(folder):
    write_card(folder, "data_files: train.*")
    assert prompts(folder) == ["1 + 1 ="]


@pytest.mark.parametrize(
    "settings",
    [
        "data_files: {secret}",
        "data_files: ../secret.jsonl",
        "data_files: [train.jsonl, ../secret.jsonl]",
        "data_files: [{{split: train, path: ../secret.jsonl}}]",
        "data_files: [{{split: train, path: [train.jsonl, ../secret.jsonl]}}]",
        "data_files: {{train: ../secret.jsonl}}",
        "data_dir: ..",
        "data_files: http://127.0.0.1:1/secret.jsonl",
        "data_files: file://{secret}",
        "data_files: zip://secret.jsonl::{secret}.zip",
    ],
)
def test_a_card_that_names_a_file_elsewhere_is_refused(folder, secret, settings):
    write_card(folder, settings.format(secret=secret))
    with pytest.raises(ConfigError, match=r"README.md names .*Allowed: files in its own folder"):
        prompts(folder)


def test_a_second_card_that_names_a_file_elsewhere_is_refused(folder, secret):
    settings = {"configs": [{"config_name": "default", "data_files": str(secret)}]}
    (folder / ".huggingface.yaml").write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match=r"\.huggingface\.yaml names"):
        prompts(folder)


def saved(tmp_path: Path, rows, name: str) -> Path:
    Dataset.from_list(rows).save_to_disk(tmp_path / name)
    return tmp_path / name


def test_a_saved_data_set_that_names_a_file_elsewhere_is_refused(tmp_path):
    own, other = (saved(tmp_path, rows, name) for rows, name in ((ROWS, "own"), (SECRET, "other")))
    assert prompts(own) == ["1 + 1 ="]
    state = json.loads((own / "state.json").read_text())
    (file,) = other.glob("*.arrow")
    for name in (f"../other/{file.name}", str(file)):
        (own / "state.json").write_text(json.dumps(state | {"_data_files": [{"filename": name}]}))
        with pytest.raises(ConfigError, match=r"it names the file '.*\.arrow'\. Allowed"):
            prompts(own)


def test_a_saved_split_elsewhere_is_refused(tmp_path):
    saved(tmp_path, SECRET, "other")
    own = tmp_path / "own"
    DatasetDict(train=Dataset.from_list(ROWS)).save_to_disk(own)
    (own / "dataset_dict.json").write_text(json.dumps({"splits": ["../other"]}))
    with pytest.raises(ConfigError, match=r"it names the file '\.\./other'"):
        DatasetTasks(str(own), split="../other").load()


def test_a_data_set_of_the_hub_names_files_of_the_hub():
    check_hub_files("owner/name", {"train": ["hf://datasets/owner/name@1/train.csv"]})
    for file in ("/home/user/secret.csv", "https://host/a.csv", "file:///a.csv"):
        with pytest.raises(ConfigError, match=r"owner/name: it names the file"):
            check_hub_files("owner/name", {"train": ["hf://datasets/owner/name@1/a.csv", file]})


def test_malformed_cards_are_left_to_their_reader(folder):
    (folder / "README.md").write_text("---\nconfigs: [1, {data_files: 3}, {}]\n---\n")
    (folder / ".huggingface.yaml").write_text("[")
    with pytest.raises(ConfigError, match=r"`datasets` cannot read this folder"):
        prompts(folder)
