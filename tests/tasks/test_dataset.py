"""Tasks from tables: files, folders and hub data sets, in plain, TRL and verl formats."""

import json

import huggingface_hub.constants
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grupo.tasks import Columns, DatasetTasks, FromFunction, task_key
from grupo.util.errors import ConfigError

VERL = {
    "data_source": "openai/gsm8k",
    "prompt": [{"role": "user", "content": "2 + 2 ="}],
    "ability": "math",
    "reward_model": {"style": "rule", "ground_truth": "4"},
    "extra_info": {"split": "train", "index": 0},
}


def write(path, *lines):
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_a_trl_row_of_text_keeps_its_columns(tmp_path):
    row = {"prompt": "2 + 2 =", "solution": "4"}
    (task,) = DatasetTasks(write(tmp_path / "rows.jsonl", json.dumps(row), "")).load()
    assert (task.prompt, task.reference_answer, task.source) == ("2 + 2 =", None, "rows")
    assert task.columns == {"solution": "4"}


def test_a_mapped_column_keeps_its_own_name_too(tmp_path):
    path = write(tmp_path / "rows.jsonl", '{"question": "1 + 1 =", "solution": "2"}')
    (task,) = DatasetTasks(path, Columns(prompt="question", answer="solution")).load()
    assert (task.prompt, task.reference_answer, task.columns) == ("1 + 1 =", "2", {"solution": "2"})


def test_trl_rows_of_messages_become_messages(tmp_path):
    row = {"prompt": VERL["prompt"], "answer": "4"}
    (task,) = DatasetTasks(write(tmp_path / "rows.jsonl", json.dumps(row))).load()
    assert task.prompt == ({"role": "user", "content": "2 + 2 ="},)
    assert task.key == task_key("2 + 2 =")


def test_a_verl_parquet_file_is_read(tmp_path):
    path = str(tmp_path / "train.parquet")
    pq.write_table(pa.Table.from_pylist([VERL, VERL]), path)
    task, _ = DatasetTasks(path).load()
    assert (task.reference_answer, task.source, task.prompt) == (
        "4",
        "openai/gsm8k",
        tuple(VERL["prompt"]),
    )
    assert task.columns["extra_info"] == {"split": "train", "index": 0}
    assert task.columns["reward_model"] == {"style": "rule", "ground_truth": "4"}


def test_verl_columns_of_json_text_are_parsed(tmp_path):
    path = str(tmp_path / "train.parquet")
    flat = {k: v if isinstance(v, str) else json.dumps(v) for k, v in VERL.items()}
    pq.write_table(pa.Table.from_pylist([flat]), path)
    (task,) = DatasetTasks(path).load()
    assert (task.reference_answer, task.prompt) == ("4", tuple(VERL["prompt"]))
    assert task.columns["extra_info"] == {"split": "train", "index": 0}


def test_arrays_become_lists_and_other_json_text_stays_text():
    row = {"prompt": '{"a": 1}', "answer": '{"b": 2}', "numbers": np.array([1, 2])}
    (task,) = FromFunction(lambda: [row]).load()
    assert (task.prompt, task.reference_answer) == ('{"a": 1}', '{"b": 2}')
    assert task.columns["numbers"] == [1, 2]


def test_a_folder_saved_by_datasets_is_read(tmp_path):
    import datasets

    rows = datasets.Dataset.from_dict({"prompt": ["a", "b"], "answer": ["1", "2"]})
    datasets.DatasetDict({"test": rows}).save_to_disk(tmp_path / "saved")
    tasks = DatasetTasks(str(tmp_path / "saved"), split="test").load()
    assert [(task.prompt, task.reference_answer) for task in tasks] == [("a", "1"), ("b", "2")]
    with pytest.raises(ConfigError, match=r"no split 'tset'\. Did you mean 'test'"):
        DatasetTasks(str(tmp_path / "saved"), split="tset").load()


def test_a_folder_of_data_files_is_read(tmp_path, monkeypatch):
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "train.jsonl", '{"prompt": "a"}', '{"prompt": "b"}')
    assert [t.prompt for t in DatasetTasks(str(tmp_path / "data")).load()] == ["a", "b"]


def test_a_hub_name_without_a_network_is_a_config_error_that_names_the_network(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r"no such file or folder.*hub.*Without a network"):
        DatasetTasks("nobody/no-such-rows").load()


def test_the_error_of_a_malformed_line_has_its_number(tmp_path):
    path = write(tmp_path / "rows.jsonl", '{"prompt": "a"}', "", '{"prompt": ', '{"prompt": "b"}')
    with pytest.raises(ConfigError, match=r"rows\.jsonl, line 3 is not JSON"):
        DatasetTasks(path).load()


@pytest.mark.parametrize("line", ["[1, 2]", '"text"', "3", "null"])
def test_a_line_without_an_object_is_a_config_error(tmp_path, line):
    with pytest.raises(ConfigError, match=r"line 2 is a JSON .*Allowed: an object"):
        DatasetTasks(write(tmp_path / "rows.jsonl", '{"prompt": "a"}', line)).load()


def test_invalid_utf8_and_deep_nesting_are_config_errors(tmp_path):
    (tmp_path / "bytes.jsonl").write_bytes(b'{"prompt": "\xff"}')
    write(tmp_path / "deep.jsonl", "[" * 100_000)
    for name, format_name in (("bytes.jsonl", "UTF-8"), ("deep.jsonl", "JSON")):
        with pytest.raises(ConfigError, match=f"{name}, line 1 is not {format_name}"):
            DatasetTasks(str(tmp_path / name)).load()


@pytest.mark.parametrize("prompt", ["", "  ", None, 3, [], [{"role": "user"}], {"a": 1}])
def test_the_error_of_an_invalid_prompt_has_its_row(tmp_path, prompt):
    rows = [json.dumps({"prompt": p}) for p in ("good", prompt)]
    with pytest.raises(ConfigError, match=r"line 2, column 'prompt' is .*Allowed: text"):
        DatasetTasks(write(tmp_path / "rows.jsonl", *rows)).load()


def test_a_missing_column_is_a_config_error_with_the_nearest_name(tmp_path):
    path = write(tmp_path / "rows.jsonl", '{"promt": "a"}')
    with pytest.raises(ConfigError, match=r"no column 'prompt'.*Did you mean 'promt'"):
        DatasetTasks(path).load()
    path = write(tmp_path / "rows.jsonl", '{"prompt": "a", "solution": "1"}')
    with pytest.raises(ConfigError, match=r"no column 'solutoin' for the answer.*'solution'"):
        DatasetTasks(path, Columns(answer="solutoin")).load()


def test_missing_empty_and_unreadable_files_are_config_errors(tmp_path):
    write(tmp_path / "rows.jsonl", "", "  ")
    with pytest.raises(ConfigError, match=r"rows\.jsonl has no rows"):
        DatasetTasks(str(tmp_path / "rows.jsonl")).load()
    with pytest.raises(ConfigError, match=r"There is no file .*Did you mean 'rows\.jsonl'"):
        DatasetTasks(str(tmp_path / "row.jsonl")).load()
    with pytest.raises(ConfigError, match=r"ends in '.txt'. Allowed: .jsonl, .parquet"):
        DatasetTasks(write(tmp_path / "rows.txt", "a")).load()
    with pytest.raises(ConfigError, match=r"is not readable as Parquet"):
        DatasetTasks(write(tmp_path / "rows.parquet", "not parquet at all")).load()


@pytest.mark.parametrize("name", ["examples.json", "data.txt", "owner/rows.xlsx"])
def test_a_missing_file_is_not_looked_for_on_the_hub(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grupo.tasks.dataset.load_dataset_table", None)
    with pytest.raises(ConfigError, match=f"There is no file or folder {name}"):
        DatasetTasks(name).load()
