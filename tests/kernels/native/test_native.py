"""C is compiled once, wherever something can be kept; where it cannot be, torch does it all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grupo.kernels import native
from grupo.kernels.backend import HFBackend
from grupo.kernels.llama.backend import NativeLlamaBackend
from tests.helpers.activation_recall import sampled, talked
from tests.helpers.llama_backends import policy_of, worked
from tests.helpers.native_build import works
from tests.helpers.paths import ROOT

KINDS = torch.float32, torch.float64
ASKED = f"""
import sys
sys.path.append({str(ROOT)!r})
import torch
from tests.helpers.native_build import QUICK, works
from grupo.kernels import native
native.FLAGS = QUICK
print("ready", flush=True)
input()
assert works(native.library(torch.float32))
"""


def kept(cache: Path) -> list[Path]:
    """What is in the cache, unfinished things too."""
    return sorted(cache.iterdir()) if cache.exists() else []


@pytest.mark.parametrize("dtype", KINDS)
def test_it_is_compiled_once_and_found_again(cache, compiler, dtype):
    for _ in range(3):
        native.library.cache_clear()
        assert works(native.library(dtype), dtype)
    assert compiler.called == len(kept(cache)) == 1


def test_each_kind_of_numbers_has_a_library_of_its_own(cache, compiler):
    assert all(works(native.library(dtype), dtype) for dtype in KINDS)
    assert compiler.called == len(kept(cache)) == 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64])
def test_of_other_numbers_there_is_none(cache, compiler, dtype):
    assert native.library(dtype) is None
    assert compiler.called == 0


def test_other_sources_and_other_flags_are_compiled_anew(cache, compiler, tmp_path, monkeypatch):
    assert works(native.library(torch.float32))
    monkeypatch.setattr(native, "FLAGS", [*native.COMPILE_FLAGS, "-DMORE"])
    native.library.cache_clear()
    assert works(native.library(torch.float32))
    for source in native.SOURCE_FOLDER.glob("*.[ch]"):
        (tmp_path / source.name).write_text(source.read_text() + "\n")
    monkeypatch.setattr(native, "HERE", tmp_path)
    native.library.cache_clear()
    assert works(native.library(torch.float32))
    assert compiler.called == len(kept(cache)) == 3


def test_a_compiler_may_be_called_with_words_of_its_own(cache, compiler, monkeypatch):
    monkeypatch.setenv("CC", f"{compiler.path} -DMORE")
    assert works(native.library(torch.float32))
    assert compiler.called == 1


FAILING = {
    "fails": "exit 1",
    "does nothing": "exit 0",
    "is killed": "kill -9 $$",
    "writes garbage": 'while [ "$1" != -o ]; do shift; done; echo garbage > "$2"',
    "writes nothing": 'while [ "$1" != -o ]; do shift; done; : > "$2"',
}


@pytest.mark.parametrize("how", FAILING)
def test_a_compiler_that_fails_leaves_nothing_and_may_do_better_later(cache, compiler, how):
    compiler.does(FAILING[how])
    assert native.library(torch.float32) is None
    assert kept(cache) == []
    compiler.does('exec cc "$@"')
    native.library.cache_clear()
    assert works(native.library(torch.float32))
    assert len(kept(cache)) == 1


@pytest.mark.parametrize("left", [b"", b"garbage"])
def test_what_is_kept_and_damaged_is_compiled_anew(cache, compiler, left):
    native.library(torch.float32)
    (path,) = kept(cache)
    path.unlink()  # what is loaded must not be written to
    path.write_bytes(left)
    for _ in range(2):
        native.library.cache_clear()
        assert works(native.library(torch.float32))
    assert compiler.called == 2


@pytest.mark.parametrize("cc", ["/nonexistent", "", "/etc/passwd"])
def test_without_a_compiler_a_policy_speaks_by_modules(cache, folder, monkeypatch, cc):
    with_one = policy_of(folder)
    assert isinstance(with_one.evaluator.body, NativeLlamaBackend)
    assert not with_one.warnings
    said = talked(with_one.actor(7))
    for path in kept(cache):
        path.unlink()
    monkeypatch.setenv("CC", cc)
    native.library.cache_clear()
    assert native.library(torch.float32) is None
    policy = policy_of(folder)
    assert isinstance(policy.evaluator.body, HFBackend)
    assert [line.split(" works")[0] for line in policy.warnings] == ["No C compiler"]
    with worked() as counts:
        again = talked(policy.actor(7))
        policy.signals(sampled(policy)).logp.sum().backward()
    assert not counts
    assert [r.text for r in again] == [r.text for r in said]


def test_what_torch_has_no_product_for_has_no_library(cache, compiler, monkeypatch):
    monkeypatch.setitem(native.C_TYPES, torch.float32, ("float", 0, "no_such_product_"))
    assert native.library(torch.float32) is None
    assert compiler.called == 0


def test_where_nothing_can_be_kept_it_is_compiled_each_time(compiler, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(
        "XDG_CACHE_HOME", str(tmp_path / "file")
    )  # it cannot be a folder, even root's
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    for times in (1, 2):
        native.library.cache_clear()
        assert works(native.library(torch.float32))
        assert compiler.called == times
        assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_where_writing_is_forbidden_it_is_compiled_each_time(cache, compiler):
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    assert works(native.library(torch.float32))
    assert kept(cache) == []


def test_processes_that_compile_at_once_all_get_a_library(cache, compiler):
    compiler.does('sleep 0.3; exec cc "$@"')
    told = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([sys.executable, "-c", ASKED], **told) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait() for process in both] == [0, 0]
    for process in both:
        process.stdin.close()
        process.stdout.close()
    assert compiler.called == 2
    assert len(kept(cache)) == 1
