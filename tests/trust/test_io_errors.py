"""An error at every system call of saves and runs: no corruption, and no false success."""

import errno
import shutil
from itertools import count

import pytest

from grupo.storage import atomic_files
from grupo.storage.journal import Journal
from tests.helpers import checkpoint_contents
from tests.helpers.failing_disk import (
    ERRORS,
    FailingDisk,
    fail_each_call,
    fail_each_call_of_a_first_save,
)
from tests.helpers.resumed_runs import assert_same_outcome
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.trust_cases import SHARE, share_of

pytestmark = pytest.mark.trust

WHOLE, SHORT = 1 << 30, 100  # bytes that a write takes at most
OPTIONS = [
    {"code": getattr(errno, name), "sticky": sticky, "most": most}
    for name in ERRORS
    for sticky in (False, True)
    for most in (WHOLE, SHORT)
]
RUN_TESTS = 10  # tests that share the calls of a run
RUN_ERRORS = ("SaveFailed: ", "ConfigError: ")


def label(options) -> str:
    kind = "sticky" if options["sticky"] else "once"
    return f"{errno.errorcode[options['code']]}-{kind}-{options['most']}"


@pytest.mark.parametrize("options", share_of(OPTIONS), ids=label)
def test_an_error_at_any_call_of_a_save_leaves_earlier_checkpoints_intact(options, tmp_path):
    run = tmp_path / "run"
    for step in (0, 1, 2):
        checkpoint_contents.save(run, step)
    (run / "tmp.0").mkdir()
    (run / "tmp.0" / "weights.safetensors").write_bytes(b"unfinished")
    assert len(fail_each_call(run, tmp_path, **options)) > (100 if options["most"] == SHORT else 40)


@pytest.mark.parametrize("options", share_of(OPTIONS), ids=label)
def test_an_error_at_any_call_of_a_first_save_leaves_none_or_this_checkpoint(options, tmp_path):
    assert len(fail_each_call_of_a_first_save(tmp_path, **options)) > 30


@pytest.mark.parametrize("options", share_of(OPTIONS), ids=label)
def test_an_error_at_any_call_of_an_atomic_write_leaves_the_old_text_or_the_new(options, tmp_path):
    path, old, new = tmp_path / "recipe.json", "old" * 100, "new" * 100
    for n in count(1):
        atomic_files.write_atomically(path, old)
        disk = FailingDisk(n, **options)
        try:
            atomic_files.write_atomically(path, new, syscall=disk)
        except OSError:
            assert path.read_text() in (old, new)
        else:
            assert path.read_text() == new
        atomic_files.remove_temporary_files(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["recipe.json"]
        if not disk.failed:
            break
    assert n > 8


@pytest.mark.parametrize("options", share_of(OPTIONS), ids=label)
def test_an_error_at_any_call_of_a_journal_keeps_the_synced_lines(options, tmp_path):
    records = [{"step": step, "text": "x" * 150} for step in range(3)]
    for n in count(1):
        journal = Journal(tmp_path / f"{n}.jsonl")
        journal.append(records[0])
        journal.fsync()
        snapshot, disk = journal.state(0), FailingDisk(n, **options)
        try:
            failing = Journal(journal.path, disk)
            failing.append(*records[1:])
            failing.fsync()
            failing.truncate(snapshot)
        except OSError:
            assert disk.failed
        Journal(journal.path).truncate(snapshot)
        assert journal.read() == (records[:1], ())
        if not disk.failed:
            break
    assert n > 10


@pytest.mark.parametrize("phase", ["train", "resume"])
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "sticky"])
@pytest.mark.parametrize("first", range(1, RUN_TESTS + 1))
def test_a_run_with_an_error_at_any_call_ends_with_a_message_and_resumes_with_the_same_bits(
    phase, sticky, first, training_process, tmp_path
):
    """Every tenth call from the first on, until no call is left to fail; the errors alternate."""
    for n in count(first, round(RUN_TESTS / SHARE)):
        run, code = tmp_path / str(n), getattr(errno, ERRORS[n % len(ERRORS)])
        if phase == "resume":
            assert training_process("train", run, recipe="grpo", kill="step/begin:4").killed
        options = {"n": n, "code": code, "sticky": sticky}
        result = training_process.resume_or_train(run, "grpo", fail=options)
        assert result.succeeded or result.error.startswith(RUN_ERRORS), (n, result.error)
        if result.succeeded:
            assert differences(training_process.uninterrupted("grpo").outcome, outcome(run)) == []
        assert_same_outcome(training_process, run, "grpo")
        shutil.rmtree(run)
        if not result.failed:
            break
    assert n > 200
