"""Compilation of the C kernels: cached, repeated after failures, replaced by torch without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grupo.kernels import native
from grupo.kernels.backend import HFBackend
from grupo.kernels.llama.backend import NativeLlamaBackend
from tests.helpers.activation_recall import generate_rollouts, sampled_batch
from tests.helpers.fast_cases import fast_cases
from tests.helpers.llama_backends import count_calls, policy_of
from tests.helpers.native_build import is_working
from tests.helpers.paths import ROOT

DTYPES = torch.float32, torch.float64
PROGRAM = f"""
import sys
sys.path.append({str(ROOT)!r})
import torch
from tests.helpers.native_build import FAST_FLAGS, is_working
from grupo.kernels import native
native.COMPILE_FLAGS = FAST_FLAGS
print("ready", flush=True)
input()
assert is_working(native.library(torch.float32))
"""


def cached_files(cache: Path) -> list[Path]:
    """All files in the cache, unfinished ones included."""
    return sorted(cache.iterdir()) if cache.exists() else []


@pytest.mark.parametrize("dtype", fast_cases(1, DTYPES))
def test_library_is_compiled_once_and_then_loaded_from_the_cache(cache, compiler, dtype):
    for _ in range(3):
        native.library.cache_clear()
        assert is_working(native.library(dtype), dtype)
    assert compiler.num_calls == len(cached_files(cache)) == 1


@pytest.mark.slow
def test_each_dtype_has_its_own_library(cache, compiler):
    assert all(is_working(native.library(dtype), dtype) for dtype in DTYPES)
    assert compiler.num_calls == len(cached_files(cache)) == 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64])
def test_other_dtypes_have_no_library(cache, compiler, dtype):
    assert native.library(dtype) is None
    assert compiler.num_calls == 0


@pytest.mark.slow
def test_changed_sources_and_flags_are_recompiled(cache, compiler, tmp_path, monkeypatch):
    assert is_working(native.library(torch.float32))
    monkeypatch.setattr(native, "COMPILE_FLAGS", [*native.COMPILE_FLAGS, "-DMORE"])
    native.library.cache_clear()
    assert is_working(native.library(torch.float32))
    for source in native.SOURCE_FOLDER.glob("*.[ch]"):
        (tmp_path / source.name).write_text(source.read_text() + "\n")
    monkeypatch.setattr(native, "SOURCE_FOLDER", tmp_path)
    native.library.cache_clear()
    assert is_working(native.library(torch.float32))
    assert compiler.num_calls == len(cached_files(cache)) == 3


@pytest.mark.slow
def test_compiler_command_may_contain_options(cache, compiler, monkeypatch):
    monkeypatch.setenv("CC", f"{compiler.path} -DMORE")
    assert is_working(native.library(torch.float32))
    assert compiler.num_calls == 1


FAILURES = {
    "fails": "exit 1",
    "does nothing": "exit 0",
    "is killed": "kill -9 $$",
    "writes garbage": 'while [ "$1" != -o ]; do shift; done; echo garbage > "$2"',
    "writes nothing": 'while [ "$1" != -o ]; do shift; done; : > "$2"',
}


@pytest.mark.parametrize("failure", fast_cases(1, FAILURES))
def test_failed_compilation_leaves_no_files_and_is_repeated(cache, compiler, failure):
    compiler.set_script(FAILURES[failure])
    assert native.library(torch.float32) is None
    assert cached_files(cache) == []
    compiler.set_script('exec cc "$@"')
    native.library.cache_clear()
    assert is_working(native.library(torch.float32))
    assert len(cached_files(cache)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("content", fast_cases(1, [b"", b"garbage"]))
def test_damaged_cache_file_is_recompiled(cache, compiler, content):
    native.library(torch.float32)
    (path,) = cached_files(cache)
    path.unlink()  # a loaded library must not be overwritten
    path.write_bytes(content)
    for _ in range(2):
        native.library.cache_clear()
        assert is_working(native.library(torch.float32))
    assert compiler.num_calls == 2


@pytest.mark.parametrize("cc", fast_cases(1, ["/nonexistent", "", "/etc/passwd"]))
def test_without_a_compiler_a_policy_uses_the_hf_modules(cache, folder, monkeypatch, cc):
    native_policy = policy_of(folder)
    assert isinstance(native_policy.evaluator.backend, NativeLlamaBackend)
    assert not native_policy.warnings
    expected = generate_rollouts(native_policy.actor(7))
    for path in cached_files(cache):
        path.unlink()
    monkeypatch.setenv("CC", cc)
    native.library.cache_clear()
    assert native.library(torch.float32) is None
    policy = policy_of(folder)
    assert isinstance(policy.evaluator.backend, HFBackend)
    with count_calls() as counts:
        rollouts = generate_rollouts(policy.actor(7))
        policy.signals(sampled_batch(policy)).logp.sum().backward()
    assert not counts
    assert [r.text for r in rollouts] == [r.text for r in expected]


def test_without_a_blas_function_in_torch_there_is_no_library(cache, compiler, monkeypatch, caplog):
    monkeypatch.setitem(native.C_TYPES, torch.float32, ("float", 0, "no_such_product_"))
    for _ in range(2):
        native.library.cache_clear()
        assert native.library(torch.float32) is None
    assert compiler.num_calls == 0
    assert caplog.messages == [
        "No C kernels, so that a CPU is about half as fast:"
        " torch's library exports no BLAS function 'no_such_product_'"
    ]


def test_missing_compiler_is_logged_once_for_all_dtypes(cache, monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("CC", f"{tmp_path}/missing -m64")
    assert [native.library(dtype) for dtype in DTYPES] == [None, None]
    (message,) = caplog.messages
    assert message.startswith(
        "No C kernels, so that a CPU is about half as fast:"
        f" the C compiler '{tmp_path}/missing -m64' (CC, otherwise cc) failed (FileNotFoundError: "
    )


def test_failed_compilation_is_logged_with_the_first_error(cache, compiler, caplog):
    compiler.set_script("echo a.c:1: note >&2; echo a.c:2: error: no type >&2; exit 1")
    assert native.library(torch.float32) is None
    (message,) = caplog.messages
    assert message.endswith("(CC, otherwise cc) failed (a.c:2: error: no type)")


@pytest.mark.slow
def test_no_line_is_logged_when_the_library_works(cache, compiler, caplog):
    assert is_working(native.library(torch.float32))
    assert caplog.messages == []


@pytest.mark.slow
def test_without_a_cache_folder_the_library_is_compiled_each_time(compiler, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    # a file cannot be a folder, not even for root
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    for times in (1, 2):
        native.library.cache_clear()
        assert is_working(native.library(torch.float32))
        assert compiler.num_calls == times
        assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_with_a_read_only_cache_folder_the_library_is_compiled_each_time(cache, compiler):
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    assert is_working(native.library(torch.float32))
    assert cached_files(cache) == []


@pytest.mark.slow
def test_concurrent_processes_all_get_a_library(cache, compiler):
    compiler.set_script('sleep 0.3; exec cc "$@"')
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM], **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait() for process in processes] == [0, 0]
    for process in processes:
        process.stdin.close()
        process.stdout.close()
    assert compiler.num_calls == 2
    assert len(cached_files(cache)) == 1
