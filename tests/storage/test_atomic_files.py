import os

import pytest

from grupo.core.errors import ConfigError
from grupo.storage import atomic_files
from grupo.storage.atomic_files import Journal

RECORDS = [{"step": 0, "loss": 0.1}, {"step": 1, "text": "é\n"}, {"step": 2, "loss": float("nan")}]
LOADED = [*RECORDS[:2], {"step": 2, "loss": "NaN"}]


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "metrics.jsonl")
    for record in RECORDS:
        journal.append(record)
    return journal


def test_journal_reads_appended_records(journal):
    assert journal.read() == (LOADED, ())


def test_missing_journal_is_empty(tmp_path):
    journal = Journal(tmp_path / "none.jsonl")
    assert (journal.length(), journal.read()) == (0, ([], ()))


def test_appending_many_records_equals_one_by_one(journal, tmp_path):
    other = Journal(tmp_path / "other.jsonl")
    other.append(*RECORDS)
    assert other.path.read_bytes() == journal.path.read_bytes()


def test_length_is_the_size_of_the_file_at_once(journal):
    assert journal.length() == len(journal.path.read_bytes())
    journal.fsync()
    assert journal.length() == len(journal.path.read_bytes())


def test_truncated_and_rewritten_journal_is_identical(journal):
    whole = journal.path.read_bytes()
    lengths = [0, *(at + 1 for at, byte in enumerate(whole) if byte == ord("\n"))]
    for done, length in enumerate(lengths):
        Journal.truncate(journal.path, length)
        journal.append(*RECORDS[done:])
        assert journal.path.read_bytes() == whole


def test_journal_torn_at_any_byte_is_read_up_to_the_tear_with_a_note(journal):
    whole = journal.path.read_bytes()
    for length in range(len(whole) + 1):
        journal.path.write_bytes(whole[:length])
        lines = whole[:length].count(b"\n")
        records, notes = journal.read()
        assert records == LOADED[:lines]
        left = length - (whole[:length].rfind(b"\n") + 1)
        expected = f"{journal.path}: line {lines + 1} is torn, {left} bytes left out"
        assert notes == ((expected,) if left else ())


def test_hole_in_the_last_line_is_a_tear(journal):
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-9] + b"\0" * 8 + b"\n")
    records, notes = journal.read()
    assert records == LOADED[:2]
    assert "line 3 is torn" in notes[0]


def test_damaged_line_before_the_last_is_rejected_with_its_number(journal):
    whole = journal.path.read_bytes().splitlines(keepends=True)
    for bad in (b'{"step": \n', b"\0\0\n", b"\xff\n", b"NaN\n", b"\n"):
        journal.path.write_bytes(whole[0] + bad + whole[2])
        with pytest.raises(ConfigError, match="line 2, cannot be read"):
            journal.read()


def test_append_after_a_torn_line_is_rejected(journal):
    journal.path.write_bytes(journal.path.read_bytes()[:-1])
    with pytest.raises(ConfigError, match="torn line"):
        journal.append({"step": 3})


def test_truncation_inside_a_line_or_past_the_end_is_rejected(journal):
    whole = journal.path.read_bytes()
    ends = {0, *(at + 1 for at, byte in enumerate(whole) if byte == ord("\n"))}
    for length in set(range(len(whole) + 3)) - ends:
        with pytest.raises(ConfigError, match="no line ends there"):
            Journal.truncate(journal.path, length)
    assert journal.path.read_bytes() == whole


def test_record_that_json_cannot_hold_leaves_the_journal_unchanged(journal):
    before = journal.path.read_bytes()
    with pytest.raises(ConfigError, match="/b is a set"):
        journal.append({"a": 1}, {"b": {1}})
    assert journal.path.read_bytes() == before


def test_atomic_write_replaces_the_text_and_leaves_no_other_file(tmp_path):
    atomic_files.write_atomically(tmp_path / "recipe.json", "old")
    atomic_files.write_atomically(tmp_path / "recipe.json", "né")
    assert (tmp_path / "recipe.json").read_text(encoding="utf-8") == "né"
    assert os.listdir(tmp_path) == ["recipe.json"]


def test_write_new_never_overwrites_a_file(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError):
        atomic_files.write_new(tmp_path / "a", [b"new"])
    assert (tmp_path / "a").read_text() == "old"


def test_folders_are_created_with_parents_and_removed_with_contents(tmp_path):
    atomic_files.make_folder(tmp_path / "a" / "b")
    atomic_files.make_folder(tmp_path / "a" / "b")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "a" / "b" / "link").symlink_to(tmp_path / "kept")
    atomic_files.remove(tmp_path / "a")
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_remove_unfinished_removes_only_temporary_files(tmp_path):
    (tmp_path / "tmp.1").mkdir()
    (tmp_path / "tmp.1" / "weights").touch()
    (tmp_path / "tmp.2").touch()
    (tmp_path / "step-00000001").mkdir()
    atomic_files.remove_unfinished(tmp_path)
    assert os.listdir(tmp_path) == ["step-00000001"]
