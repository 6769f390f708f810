"""Export of attempts to a git repository: a commit for each rollout, linked to its parents."""

import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from grupo.report.read_run import Record, read_numbered_rollouts
from grupo.util.errors import ConfigError
from grupo.util.terminal_text import one_line

FILE_NAME = "attempt.txt"  # the text of a rollout in its commit
ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def write_git_history(run_folder: Path, folder: Path, selected: Sequence[Record]) -> int:
    """Write rollouts and their ancestors into a new git repository; return the number of commits.

    The commit of a rollout has its text as `attempt.txt`, the rollouts that its prompt showed as
    parent commits, and its `id` as a tag. The branch `main` is at the first of the rollouts. The
    time of a commit is the number of its step, in seconds, so that equal runs have equal commits.
    The journal is streamed twice, and one text is held in memory.

    Args:
        run_folder: The folder of the run.
        folder: The folder of the repository, which must be new.
        selected: Records of rollouts of this run, with their `id`.

    Raises:
        ConfigError: git is absent or fails, the folder exists or cannot be made, or no rollout is
            selected.
    """
    git = shutil.which("git")
    if git is None:
        raise ConfigError("git: the program git is not installed. Install git, or use --json.")
    if folder.exists() or not folder.parent.is_dir():
        reason = "exists" if folder.exists() else "is in a folder that does not exist"
        raise ConfigError(f"git: {str(folder)!r} {reason}. Name a new folder.")
    if not selected:
        raise ConfigError("git: no rollout matches. Select at least one.")
    parents = {r["id"]: r["parents"] for r in read_numbered_rollouts(run_folder)}
    ids = [record["id"] for record in selected]
    written = with_ancestors(ids, parents)
    try:
        folder.mkdir()
    except OSError as error:
        raise ConfigError(f"git: {str(folder)!r} cannot be made: {error.strerror}.") from error
    rollouts = (r for r in read_numbered_rollouts(run_folder) if r["id"] in written)
    try:
        _fill(git, folder, commit_stream(rollouts, ids[0]))
    except BaseException:  # also an interrupt: the same command works again
        shutil.rmtree(folder)
        raise
    return len(written)


def _fill(git: str, folder: Path, stream: Iterator[bytes]) -> None:
    """Make the repository in an empty folder, with the commits and the files of `main`."""
    _run(git, folder, "init", "--quiet", "--template=")
    _run(git, folder, "symbolic-ref", "HEAD", "refs/heads/main")
    _import(git, folder, stream)
    _run(git, folder, "reset", "--quiet", "--hard")


def with_ancestors(ids: Sequence[str], parents: Mapping[str, Sequence[str]]) -> Collection[str]:
    """The rollouts, their parents, the parents of these, and so on; unknown parents are left out.

    Args:
        ids: The `id` of each rollout.
        parents: The parents of each rollout of the run.

    >>> parents = {"1.0": (), "1.1": (), "2.0": ("1.0",), "3.0": ("2.0", "0.9")}
    >>> sorted(with_ancestors(["3.0"], parents))
    ['1.0', '2.0', '3.0']
    """
    written: set[str] = set()
    waiting = [*ids]
    while waiting:
        rollout_id = waiting.pop()
        if rollout_id in parents and rollout_id not in written:
            written.add(rollout_id)
            waiting += parents[rollout_id]
    return written


def commit_stream(rollouts: Iterator[Record], main_id: str) -> Iterator[bytes]:
    """The input of `git fast-import` with a commit for each rollout.

    Args:
        rollouts: Records in the order of the journal, in which parents come first.
        main_id: The rollout of the branch `main`.
    """
    mark_of_id: dict[str, int] = {}
    for mark, rollout in enumerate(rollouts, 1):
        lines = [
            f"commit refs/tags/{rollout['id']}",
            f"mark :{mark}",
            f"committer grupo <grupo> {rollout['step']} +0000",
        ]
        yield "".join(f"{line}\n" for line in lines).encode()
        yield _data(_message(rollout))
        marks = [mark_of_id[parent] for parent in rollout["parents"] if parent in mark_of_id]
        words = ("from", *["merge"] * len(marks))
        yield "".join(f"{word} :{x}\n" for word, x in zip(words, marks, strict=False)).encode()
        yield f"M 100644 inline {FILE_NAME}\n".encode()
        yield _data(rollout["text"])
        mark_of_id[rollout["id"]] = mark
    yield f"reset refs/heads/main\nfrom :{mark_of_id[main_id]}\n".encode()


def _message(rollout: Record) -> str:
    """The message of a commit, of which a name or a value of the journal forges no line."""
    terms = (f"{name}: {value}" for name, value in rollout["reward_terms"].items())
    title = f"attempt {rollout['id']}, reward {rollout['reward']}"
    lines = (title, "", f"task: {rollout['task']}", *terms)
    return "".join(f"{one_line(line)}\n" for line in lines)


def _data(text: str) -> bytes:
    content = text.encode("utf-8", "surrogatepass")  # half of a pair of a torn character
    return b"data %d\n%b\n" % (len(content), content)


def _import(git: str, folder: Path, stream: Iterator[bytes]) -> None:
    with subprocess.Popen(
        [git, "-C", str(folder), "fast-import", "--quiet"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    ) as process:
        assert process.stdin is not None
        try:
            for part in stream:
                process.stdin.write(part)
        except BrokenPipeError:
            pass  # git has ended; its message is the error
        _, message = process.communicate()
    _check(process.returncode, message)


def _run(git: str, folder: Path, *arguments: str) -> None:
    command = [git, "-C", str(folder), *arguments]
    result = subprocess.run(command, capture_output=True, env=_environment(), check=False)
    _check(result.returncode, result.stderr)


def _environment() -> dict[str, str]:
    """Git's environment: no configuration of the user, and no repository around the folder."""
    return {"PATH": os.environ.get("PATH", os.defpath), **ENVIRONMENT}


def _check(return_code: int, message: bytes) -> None:
    if return_code:
        reason = one_line(message.decode(errors="replace").strip()[:300])
        raise ConfigError(f"git: git ended with code {return_code}: {reason}")
