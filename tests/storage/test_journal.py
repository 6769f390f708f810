"""Journals: appended, torn, truncated and damaged lines."""

from pathlib import Path

import pytest

from grupo.storage.journal import DamagedJournal, Journal, JournalState
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import EXIT_STOPPED, CommandError
from grupo.util.limits import Limit

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
        journal.truncate(JournalState(length=length))
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
    with pytest.raises(CommandError, match=r"torn line: .*\. `grupo resume .*` repeats") as raised:
        journal.append({"step": 3})
    assert raised.value.exit_code == EXIT_STOPPED


def test_truncation_inside_a_line_or_past_the_end_is_rejected(journal):
    whole = journal.path.read_bytes()
    ends = {0, *(at + 1 for at, byte in enumerate(whole) if byte == ord("\n"))}
    for length in set(range(len(whole) + 3)) - ends:
        with pytest.raises(ConfigError, match="no line ends there"):
            journal.truncate(JournalState(length=length))
    assert journal.path.read_bytes() == whole


def test_record_that_json_cannot_hold_leaves_the_journal_unchanged(journal):
    before = journal.path.read_bytes()
    with pytest.raises(ConfigError, match="/b is a set"):
        journal.append({"a": 1}, {"b": {1}})
    assert journal.path.read_bytes() == before


def steps_of_two_lines(path: Path, steps: int, text: str = "é") -> Journal:
    """A journal with two lines for each step."""
    journal = Journal(path)
    for step in range(1, steps + 1):
        journal.append({"step": step, "text": text}, {"step": step, "reward": 0.5})
    return journal


def damage_of(journal: Journal, state: JournalState, content: bytes) -> str:
    """The message about a journal with this content; "" if it verifies."""
    journal.path.write_bytes(content)
    try:
        journal.verify(state)
    except DamagedJournal as problem:
        return str(problem)
    return ""


def test_a_change_of_any_byte_before_the_mark_is_detected_and_its_line_is_named(tmp_path):
    journal = steps_of_two_lines(tmp_path / "rollouts.jsonl", 3)
    content = journal.path.read_bytes()
    state = journal.state(3)
    assert damage_of(journal, state, content) == ""
    for at, byte in enumerate(content):
        line = content[:at].count(b"\n") + 1
        for changed in {byte ^ 1, byte ^ 128, 0, 10} - {byte}:
            damaged = content[:at] + bytes([changed]) + content[at + 1 :]
            message = damage_of(journal, state, damaged)
            assert message.startswith(f"rollouts.jsonl, line {line} (step "), (at, changed)
            assert message.endswith("): its bytes are not those that were written")


def test_a_flipped_bit_in_any_page_of_a_larger_journal_is_detected(tmp_path):
    journal = steps_of_two_lines(tmp_path / "rollouts.jsonl", 100, text="long " * 1000)
    content = bytearray(journal.path.read_bytes())
    state = journal.state(100)
    assert len(content) > 500_000
    assert damage_of(journal, state, bytes(content)) == ""
    for at in range(0, len(content), 4096):
        content[at] ^= 1 << (at // 4096 % 8)
        assert "line" in damage_of(journal, state, bytes(content)), at
        content[at] ^= 1 << (at // 4096 % 8)


def test_lines_after_the_mark_are_not_verified(tmp_path):
    journal = steps_of_two_lines(tmp_path / "rollouts.jsonl", 1)
    content = journal.path.read_bytes()
    assert damage_of(journal, journal.state(1), content + b"torn") == ""


def test_lines_that_are_lost_added_or_exchanged_are_detected(tmp_path):
    journal = steps_of_two_lines(tmp_path / "rollouts.jsonl", 3)
    state = journal.state(3)
    content = journal.path.read_bytes()
    lines = content.splitlines(keepends=True)
    left = f"rollouts.jsonl: {len(content) - 3} bytes are left of the {len(content)} that were"
    assert left in damage_of(journal, state, content[:-3])
    assert ", line 1 to 6 (step 1 to 3)" in damage_of(journal, state, b"".join(reversed(lines)))
    assert ", line 1 to 6 (" in damage_of(journal, state, b"".join([*lines[:2], *lines]))
    exchanged = [*lines[:3], lines[4], lines[3], lines[5]]
    assert ", line 1 to 6 (" in damage_of(journal, state, b"".join(exchanged))
    shorter = JournalState(
        3, state.length, steps_of_two_lines(tmp_path / "other", 2).state(2).checksums
    )
    added = len(lines[4]) + len(lines[5])
    assert f", line 5: {added} bytes too many" in damage_of(journal, shorter, content)


def test_one_changed_line_of_each_block_is_located(tmp_path):
    journal = steps_of_two_lines(tmp_path / "rollouts.jsonl", 75)  # 150 lines: 64, 64 and 22
    state = journal.state(75)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    for number in (0, 1, 63, 64, 100, 127, 128, 149):
        damaged = [*lines[:number], lines[number].upper(), *lines[number + 1 :]]
        assert f", line {number + 1} (step" in damage_of(journal, state, b"".join(damaged))
    two = [lines[i].upper() if i in (71, 91) else line for i, line in enumerate(lines)]
    assert ", line 65 to 128 (step 32 to 65)" in damage_of(journal, state, b"".join(two))


def test_the_step_of_a_damaged_line_is_taken_from_the_lines_around_it(tmp_path):
    journal = steps_of_two_lines(tmp_path / "rollouts.jsonl", 3)
    state = journal.state(3)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    steps = []
    for number in range(6):
        damaged = b"".join([*lines[:number], lines[number].upper(), *lines[number + 1 :]])
        steps.append(damage_of(journal, state, damaged).partition("(")[2].partition(")")[0])
    assert steps == ["step 1", *["step 1 to 2"] * 2, *["step 2 to 3"] * 2, "step 3"]


def test_a_journal_with_one_line_for_each_step_names_the_step_exactly(tmp_path):
    journal = Journal(tmp_path / "metrics.jsonl")
    for step in (1, 2, 3):
        journal.append({"step": step})
    content = journal.path.read_bytes()
    assert "line 2 (step 2)" in damage_of(journal, journal.state(3), content.replace(b"2", b"4"))


def test_a_truncated_journal_goes_on_with_the_checksums_of_its_mark(journal):
    state = journal.state(3)
    journal.append({"step": 3})
    other = Journal(journal.path)  # as in another process
    other.truncate(state)
    other.append({"step": 4})
    other.verify(other.state(4))
    assert other.state(4).checksums.num_lines == state.checksums.num_lines + 1


def test_a_line_beyond_the_limit_is_refused_and_nothing_is_written(journal, monkeypatch):
    before = journal.path.read_bytes()
    monkeypatch.setattr("grupo.storage.journal.JOURNAL_LINE", Limit("a line", 100, "bytes", ""))
    journal.append({"text": 80 * "a"})
    with pytest.raises(CommandError, match=r"a line of 1,0\d\d bytes\. Allowed: at most 100 bytes"):
        journal.append({"text": "a"}, {"text": 1_000 * "a"})
    assert journal.path.read_bytes() == before + b'{"text": "' + 80 * b"a" + b'"}\n'
