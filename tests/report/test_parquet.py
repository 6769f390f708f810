"""Rollouts as a table: what the journal holds comes back, typed."""

import json
import math
from pathlib import Path

import pyarrow.parquet
import pytest

from grupo.core.errors import ConfigError
from grupo.report import parquet
from grupo.report.rollouts import RolloutFilter

HOSTILE = "=1+1\x00\x1b[31m\u202e\ud800 </script>\n"


def rollout(step: int, text: str, **more) -> dict:
    line = {
        "step": step,
        "task": "t",
        "prompt": "2 + 2 =",
        "answer": "4",
        "text": text,
        "reward": 1.0,
        "parts": {"right": 1.0},
        "advantage": 0.5,
        "length": 3,
        "truncated": False,
        "failed": "",
    }
    return line | more


JOURNAL = [
    rollout(0, "4"),
    rollout(0, HOSTILE, reward="NaN", parts={}, advantage=None, failed="it hung"),
    rollout(1, "5", parts={"right": 0.0, "form": 0.25}, reward=0.25, truncated=True),
    rollout(1, "", prompt=[{"role": "user", "content": "2 + 2?"}], reward="NaN"),
]


def table(run: Path, to: Path, **how):
    assert parquet.write_parquet(run, to / "a.parquet", **how) >= 0
    return pyarrow.parquet.read_table(to / "a.parquet")


def test_every_column_has_its_type_and_every_rollout_its_row(written, tmp_path):
    read = table(written(JOURNAL), tmp_path)
    assert {field.name: str(field.type) for field in read.schema} == {
        "step": "int64",
        "task": "string",
        "prompt": "string",
        "answer": "string",
        "text": "string",
        "reward": "double",
        "advantage": "double",
        "length": "int64",
        "truncated": "bool",
        "failed": "string",
        "reward/right": "double",
        "reward/form": "double",
    }
    rows = read.to_pylist()
    assert [row["step"] for row in rows] == [0, 0, 1, 1]
    assert rows[0] | {"reward/form": None} == rows[0]  # it has no such part
    assert [row["reward/right"] for row in rows] == [1.0, None, 0.0, 1.0]
    assert [row["truncated"] for row in rows] == [False, False, True, False]


def test_what_a_rollout_lacks_is_null_and_a_reward_that_is_no_number_stays_one(written, tmp_path):
    rows = table(written(JOURNAL), tmp_path).to_pylist()
    assert (rows[1]["reward"], rows[1]["advantage"], rows[1]["failed"]) == (None, None, "it hung")
    assert math.isnan(rows[3]["reward"])


def test_hostile_text_comes_back_as_it_was_but_for_halves_of_characters(written, tmp_path):
    rows = table(written(JOURNAL), tmp_path).to_pylist()
    assert rows[1]["text"] == HOSTILE.replace("\ud800", r"\ud800")


def test_a_chat_is_json(written, tmp_path):
    rows = table(written(JOURNAL), tmp_path).to_pylist()
    assert rows[0]["prompt"] == "2 + 2 ="
    assert json.loads(rows[3]["prompt"]) == JOURNAL[3]["prompt"]


def test_only_what_is_wanted_is_written(written, tmp_path):
    rows = table(written(JOURNAL), tmp_path, wanted=RolloutFilter(step=1)).to_pylist()
    assert [row["text"] for row in rows] == ["5", ""]


def test_a_run_without_rollouts_is_a_table_without_rows(written, tmp_path):
    assert table(written(), tmp_path).num_rows == 0


def test_a_long_journal_is_written_in_groups_of_rows(written, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS", 10)
    assert (
        parquet.write_parquet(written([rollout(i, str(i)) for i in range(25)]), tmp_path / "a")
        == 25
    )
    file = pyarrow.parquet.ParquetFile(tmp_path / "a")
    assert file.num_row_groups == 3
    assert [row["text"] for row in file.read().to_pylist()] == [str(i) for i in range(25)]


def test_a_file_that_exists_is_refused_and_a_broken_journal_leaves_nothing(written, tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(ConfigError, match=r"there' exists\. Name a new file"):
        parquet.write_parquet(written(JOURNAL), tmp_path / "there")
    with pytest.raises(ConfigError, match="lies in no folder"):
        parquet.write_parquet(written(JOURNAL), tmp_path / "nowhere" / "a")
    old = {n: x for n, x in JOURNAL[0].items() if n not in ("failed", "prompt")}
    with pytest.raises(
        ConfigError, match=r"line 1, lacks failed, prompt: another version wrote it"
    ):
        parquet.write_parquet(written([old]), tmp_path / "a")
    with pytest.raises(ConfigError, match="fits no column"):
        parquet.write_parquet(written([rollout(0, "a", length="three")]), tmp_path / "a")
    left = {path.name for path in tmp_path.iterdir()} - {"metrics.jsonl", "rollouts.jsonl"}
    assert left == {"there", "recipe.json"}


def test_a_real_run_comes_back(real_run, tmp_path):
    read = table(real_run, tmp_path)
    lines = (real_run / "rollouts.jsonl").read_text().splitlines()
    for row, line in zip(read.to_pylist(), map(json.loads, lines), strict=True):
        assert row["text"] == line["text"]
        assert row["reward/digits"] == line["parts"]["digits"]
        assert row["answer"] == line["answer"] != ""
