"""The seconds of steps are recorded once and repeated afterwards."""

from pathlib import Path

import pytest

from grupo.training.resume.step_durations import RecordedDurations, read_step_durations

SECONDS = [0.1, 0.2, 0.3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The durations of three steps."""
    path = tmp_path / "clock.jsonl"
    durations = RecordedDurations(path)
    assert [durations.duration_of_first_execution(step, step / 10) for step in (1, 2, 3)] == SECONDS
    return path


def test_a_step_that_runs_again_counts_its_first_seconds(path):
    durations = RecordedDurations(path)
    durations.load()
    assert durations.damage_message == ""
    assert [durations.duration_of_first_execution(step, 9.0) for step in (2, 3, 4)] == [
        0.2,
        0.3,
        9.0,
    ]
    assert read_step_durations(path).seconds == (*SECONDS, 9.0)


def test_a_run_without_recorded_seconds_has_no_file(tmp_path):
    durations = RecordedDurations(tmp_path / "clock.jsonl")
    durations.load()
    assert durations.damage_message == ""
    assert not (tmp_path / "clock.jsonl").exists()


def test_a_torn_last_line_is_removed(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    durations = RecordedDurations(path)
    durations.load()
    assert durations.damage_message == ""
    assert durations.duration_of_first_execution(3, 0.3) == 0.3
    assert path.read_bytes() == whole


@pytest.mark.slow
def test_a_change_of_any_byte_is_detected(path):
    content = path.read_bytes()
    assert read_step_durations(path).damage == ""
    for at, byte in enumerate(content[:-1]):
        for changed in {byte ^ 1, byte ^ 64, 0} - {byte}:
            path.write_bytes(content[:at] + bytes([changed]) + content[at + 1 :])
            number = content[:at].count(b"\n") + 1
            assert f"line {number} (step {number}): its bytes" in read_step_durations(path).damage


def test_times_from_a_damaged_line_on_are_measured_anew(path):
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"step": 2', b'"step": 7'))
    durations = RecordedDurations(path)
    durations.load()
    assert durations.damage_message == (
        "clock.jsonl, line 2 (step 2): its bytes are not those that were written; schedules and the"
        " end of the run count new times from there on"
    )
    assert [durations.duration_of_first_execution(step, 5.0) for step in (1, 2, 3)] == [
        0.1,
        5.0,
        5.0,
    ]
    assert read_step_durations(path).damage == ""
