"""Files of a data set that name files elsewhere: none of them is read."""

import json
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict
from huggingface_hub import constants

from grupo.tasks import DatasetTasks
from grupo.tasks.tables.dataset_references import HUB_FILES, check_files, check_hub_card
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


@pytest.mark.parametrize(
    "begin",
    [
        "---\npretty_name: a---b\n",
        "---\n# ---\n",
        "---\nsize: 1\r---\r",
        "\n \n---\n",
        "\ufeff---\n",
        "---\r",
        '---\nlicense: "\\x00"\n',
    ],
)
def test_a_card_is_read_to_the_end_at_which_datasets_ends_it(folder, secret, begin):
    config = f"configs:\n- config_name: default\n  data_files: {secret}\n---\n"
    (folder / "README.md").write_bytes(f"{begin}{config}".encode())
    with pytest.raises(ConfigError, match=r"README.md names|cannot read this folder"):
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


def test_files_of_a_data_set_are_in_its_folder_or_on_the_hub():
    for place, outside in (
        (HUB_FILES, ("/home/user/secret.csv", "https://host/a.csv", "file:///a.csv")),
        ("/data/", ("/home/user/secret.csv", "/data/../secret.csv", "zip://a.csv::/data/a.zip")),
    ):
        own = f"{place}owner/name/train.csv"
        check_files("name", place, {"train": [own]})
        for file in outside:
            with pytest.raises(ConfigError, match=r"name: it names the file"):
                check_files("name", place, {"train": [own, file]})


@pytest.fixture
def hub_card(tmp_path: Path, monkeypatch) -> Path:
    """The card of owner/name among the downloaded files of the hub."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "datasets--owner--name"
    write_rows(repository / "refs" / "main", []).write_text("1")
    return write_rows(repository / "snapshots" / "1" / "README.md", [])


def test_a_card_of_the_hub_that_names_an_address_is_refused_before_it_is_fetched(hub_card):
    write_card(hub_card.parent, "data_files: [train.csv, hf://datasets/owner/other/train.csv]")
    check_hub_card("owner/name")
    for address in ("http://127.0.0.1:1/a.jsonl", "/home/user/secret.csv"):
        write_card(hub_card.parent, f"data_files: {address}")
        with pytest.raises(ConfigError, match=f"owner/name: README.md names '{address}'"):
            check_hub_card("owner/name")


def test_malformed_cards_are_left_to_their_reader(folder):
    write_card(folder, "data_files: train.jsonl")
    (folder / ".huggingface.yaml").write_text("[")
    with pytest.raises(ConfigError, match=r"`datasets` cannot read this folder"):
        prompts(folder)
    (folder / ".huggingface.yaml").write_text("{}")
    (folder / "README.md").write_text("---\nconfigs: [1, {data_files: 3}, {}]\n---\n")
    with pytest.raises(ConfigError, match=r"`datasets` cannot read this folder"):
        prompts(folder)
