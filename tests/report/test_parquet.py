"""Export of rollouts to Parquet."""

import json
import math
from pathlib import Path

import pyarrow.parquet
import pytest

from grupo.report import parquet
from grupo.report.rollouts import RolloutFilter
from grupo.util.errors import ConfigError

HOSTILE = "=1+1\x00\x1b[31m\u202e\ud800 </script>\n"


def rollout(step: int, text: str, **more) -> dict:
    line = {
        "step": step,
        "task": "t",
        "prompt": "2 + 2 =",
        "reference_answer": "4",
        "text": text,
        "reward": 1.0,
        "reward_terms": {"right": 1.0},
        "advantage": 0.5,
        "length": 3,
        "truncated": False,
        "error": "",
    }
    return line | more


JOURNAL = [
    rollout(0, "4"),
    rollout(0, HOSTILE, reward="NaN", reward_terms={}, advantage=None, error="it hung"),
    rollout(1, "5", reward_terms={"right": 0.0, "form": 0.25}, reward=0.25, truncated=True),
    rollout(1, "", prompt=[{"role": "user", "content": "2 + 2?"}], reward="NaN"),
]


def exported(run: Path, folder: Path, **options):
    assert parquet.write_parquet(run, folder / "a.parquet", **options) >= 0
    return pyarrow.parquet.read_table(folder / "a.parquet")


def test_columns_are_typed_and_rollouts_are_rows(write_run, tmp_path):
    table = exported(write_run(JOURNAL), tmp_path)
    assert {field.name: str(field.type) for field in table.schema} == {
        "step": "int64",
        "task": "string",
        "prompt": "string",
        "reference_answer": "string",
        "text": "string",
        "turns": "string",
        "reward": "double",
        "advantage": "double",
        "length": "int64",
        "truncated": "bool",
        "error": "string",
        "reward/right": "double",
        "reward/form": "double",
    }
    rows = table.to_pylist()
    assert [row["step"] for row in rows] == [0, 0, 1, 1]
    assert rows[0] | {"reward/form": None} == rows[0]  # the rollout has no such term
    assert [row["reward/right"] for row in rows] == [1.0, None, 0.0, 1.0]
    assert [row["truncated"] for row in rows] == [False, False, True, False]


def test_missing_values_are_null_and_nan_rewards_stay_nan(write_run, tmp_path):
    rows = exported(write_run(JOURNAL), tmp_path).to_pylist()
    assert (rows[1]["reward"], rows[1]["advantage"], rows[1]["error"]) == (None, None, "it hung")
    assert math.isnan(rows[3]["reward"])


def test_untrusted_text_is_preserved_except_lone_surrogates(write_run, tmp_path):
    rows = exported(write_run(JOURNAL), tmp_path).to_pylist()
    assert rows[1]["text"] == HOSTILE.replace("\ud800", r"\ud800")


def test_chat_prompt_is_json(write_run, tmp_path):
    rows = exported(write_run(JOURNAL), tmp_path).to_pylist()
    assert rows[0]["prompt"] == "2 + 2 ="
    assert json.loads(rows[3]["prompt"]) == JOURNAL[3]["prompt"]


def test_filter_selects_rollouts(write_run, tmp_path):
    rows = exported(write_run(JOURNAL), tmp_path, rollout_filter=RolloutFilter(step=1)).to_pylist()
    assert [row["text"] for row in rows] == ["5", ""]


def test_run_without_rollouts_gives_an_empty_table(write_run, tmp_path):
    assert exported(write_run(), tmp_path).num_rows == 0


def test_long_journal_is_written_in_batches(write_run, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_ROWS", 10)
    run = write_run([rollout(i, str(i)) for i in range(25)])
    assert parquet.write_parquet(run, tmp_path / "a") == 25
    file = pyarrow.parquet.ParquetFile(tmp_path / "a")
    assert file.num_row_groups == 3
    assert [row["text"] for row in file.read().to_pylist()] == [str(i) for i in range(25)]


def test_invalid_targets_and_journals_are_rejected_and_leave_no_file(write_run, tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(ConfigError, match=r"there' exists\. Name a new file"):
        parquet.write_parquet(write_run(JOURNAL), tmp_path / "there")
    with pytest.raises(ConfigError, match="is in a folder that does not exist"):
        parquet.write_parquet(write_run(JOURNAL), tmp_path / "nowhere" / "a")
    old = {n: x for n, x in JOURNAL[0].items() if n not in ("error", "prompt")}
    with pytest.raises(ConfigError, match=r"line 1, lacks error, prompt: another version wrote it"):
        parquet.write_parquet(write_run([old]), tmp_path / "a")
    with pytest.raises(ConfigError, match="does not fit its column"):
        parquet.write_parquet(write_run([rollout(0, "a", length="three")]), tmp_path / "a")
    files = {path.name for path in tmp_path.iterdir()} - {"metrics.jsonl", "rollouts.jsonl"}
    assert files == {"there", "recipe.json"}


def test_export_of_a_real_run_matches_the_journal(real_run, tmp_path):
    table = exported(real_run, tmp_path)
    lines = (real_run / "rollouts.jsonl").read_text().splitlines()
    for row, line in zip(table.to_pylist(), map(json.loads, lines), strict=True):
        assert row["text"] == line["text"]
        assert row["reward/digits"] == line["reward_terms"]["digits"]
        assert row["reference_answer"] == line["reference_answer"] != ""
