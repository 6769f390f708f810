"""A process that trains and resumes runs in child processes, and kills them on request.

Requests and results are lines of JSON. torch, transformers and peft are loaded once; each child is
forked from a single-threaded process that has computed nothing, so that a run costs a third of a
second. What the process has loaded is exempt from garbage collection, which in a child would
traverse all of it and copy its pages.
"""

import gc
import json
import math
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import peft  # noqa: F401  # it imports 800 modules, which each child would load anew
import torch

from grupo.models import devices, loading
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.rollouts.demonstration_buffer import DemonstrationBuffer
from grupo.rollouts.statistic_store import StatisticStore
from grupo.storage import fault_injection
from grupo.storage.syscalls import SyscallHook, direct_call
from grupo.training.callbacks import NullCallback
from grupo.training.resume.extend import extend_run
from grupo.training.resume.state import State
from grupo.training.start import reopen_trainer, resume_training, run_training
from tests.helpers import pipelines, training_components, training_recipes
from tests.helpers.failing_disk import FailingDisk
from tests.helpers.power_loss import RecordingDisk, write_calls
from tests.helpers.system_calls import system_calls_through

Request = Mapping[str, Any]
NEVER = 3600.0


class PointStream(str):
    """A value of `KILL_AT` that kills nothing and writes every point and its time to a pipe."""

    def __new__(cls, pipe: int) -> Self:
        stream = super().__new__(cls)
        stream.pipe = pipe
        return stream

    def startswith(self, prefix, *_):
        os.write(self.pipe, f"{prefix} {time.monotonic()}\n".encode())
        return False


class MessageRecorder(NullCallback):
    """Records the messages of a run."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def on_message(self, message: str) -> None:
        self.messages.append(message)


def corruptions(state: State) -> Mapping[str, Callable[[], Any]]:
    """Functions that each corrupt one part of a restored state."""
    history = state.history
    return {
        "optimizer": state.optimizers["optimizer"].state.clear,
        "curriculum": lambda: setattr(history, "num_tasks_drawn", 0),
        "task history": lambda: setattr(
            history, "statistics_by_task", StatisticStore(history.statistics_by_task.statistics)
        ),
        "source history": lambda: setattr(
            history,
            "statistics_by_source",
            StatisticStore(history.statistics_by_source.statistics),
        ),
        "replays": history.replay_rollouts.clear,
        "demonstrations": lambda: setattr(history, "demonstrations", DemonstrationBuffer()),
        "unfinished": history.unfinished_rollouts.clear,
        "unfinished groups": lambda: setattr(state, "unfinished_groups", ()),
        "replies": lambda: setattr(
            state,
            "unfinished_groups",
            tuple(replace(group, replies={}) for group in state.unfinished_groups),
        ),
        "scores": state.eval_scores.clear,
        "counts": lambda: setattr(state, "generated_tokens", 0),
        "average": lambda: next(iter(state.ema_weights.values())).zero_(),
        "step": lambda: setattr(state, "step", state.step - 1),
        "weights": lambda: next(iter(state.policy.parameters())).data.view(-1)[0].mul_(1 + 2**-23),
    }


def resume_corrupted(run: str, corruption: str, callback: MessageRecorder) -> None:
    trainer = reopen_trainer(Path(run), callback)
    with trainer.lock:
        trainer.restore()
        corruptions(trainer.state)[corruption]()
        trainer()


def resume_with_later_reference(run: str, callback: MessageRecorder) -> None:
    """Resume with the checkpoint's weights as the reference policy, not the initial weights."""
    trainer = reopen_trainer(Path(run), callback)
    with trainer.lock:
        trainer.restore()
        reference: Any = trainer.learner.aux_models.signal_models["ref"]
        reference.module.requires_grad_(True)
        reference.load(trainer.policy.weights())
        trainer()


def extend_and_resume(run: str, changes: Mapping[str, Any], callback: MessageRecorder) -> None:
    """Change fields of the run's recipe, then resume it."""
    for message in extend_run(Path(run), lambda recipe: recipe.replace(**changes)):
        callback.on_message(message)
    resume_training(run, callback)


def execute(request: Request, model: str, pipe: int) -> Mapping[str, Any]:
    """Execute a request in a child process; returns the result unless the child is killed."""
    torch.set_num_threads(request.get("threads", 1))
    devices.has_bfloat16 = lambda device: True  # also on devices that emulate it
    fault_injection.KILL_AT = request.get("kill", "") or PointStream(pipe)
    callback, run = MessageRecorder(), request["run"]
    if "limit" in request:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], request["limit"]))
    actions = {
        "train": lambda: run_training(
            training_recipes.recipe(request["recipe"], model), run, callback
        ),
        "resume": lambda: resume_training(run, callback),
        "extend": lambda: extend_and_resume(run, request["changes"], callback),
        "pipeline": lambda: run_pipeline(
            pipelines.PIPELINES[request["recipe"]](model), run, lambda folder: callback
        ),
        "resume pipeline": lambda: resume_pipeline(run, lambda folder: callback),
        "resume corrupted": lambda: resume_corrupted(run, request["corruption"], callback),
        "resume with later reference": lambda: resume_with_later_reference(run, callback),
    }
    error, disk = "", disk_of(request)
    with system_calls_through(disk, Path(run).parent):
        try:
            actions[request["do"]]()
        except BaseException as raised:  # the child must not run the parent's code
            error = f"{type(raised).__name__}: {raised}"
    if isinstance(disk, RecordingDisk):
        write_calls(disk.calls, Path(request["record"]))
    failed = disk.failed if isinstance(disk, FailingDisk) else []
    return {"error": error, "messages": callback.messages, "failed": failed}


def disk_of(request: Request) -> SyscallHook:
    """The hook of the run's system calls: it records them, or lets some fail, if requested."""
    if "record" in request:
        return RecordingDisk(Path(request["run"]).parent)
    return FailingDisk(**request["fail"]) if "fail" in request else direct_call


def is_single_threaded() -> bool:
    """True if the process has one thread, so that forking is safe."""
    tasks = Path("/proc/self/task")
    return threading.active_count() == 1 and (not tasks.exists() or len(list(tasks.iterdir())) == 1)


class Kill:
    """When a child is sent a signal.

    Args:
        at: A kill point and how often the child passes it first, such as "save/begun:2"; "" for
            the start of the child.
        after: Seconds from then on.
        once: A file that must also exist; "" for none.
        by: The signal.
    """

    def __init__(
        self, at: str = "", after: float = NEVER, once: str = "", by: int = signal.SIGKILL
    ) -> None:
        self.point, _, times = at.partition(":")
        self.times = int(times or 0)
        self.after, self.once, self.by = after, once, by
        self.due = math.inf if at else time.monotonic() + after

    def update(self, output: bytes) -> None:
        """Set the time of the signal once the output has the kill point."""
        if self.due == math.inf and output.count(f"{self.point}: ".encode()) >= self.times:
            self.due = time.monotonic() + self.after

    def is_due(self) -> bool:
        return time.monotonic() >= self.due and (not self.once or os.path.exists(self.once))

    def wait_seconds(self) -> float:
        """Seconds to wait for output before `is_due` is called again."""
        return min(NEVER, max(0.001 * bool(self.once), self.due - time.monotonic()))


def run_in_child(work: Callable[[int], Any], kill: Kill | None = None) -> tuple[int, str]:
    """Run a function in a child process.

    Args:
        work: The function; it receives the pipe of the output, and its result must be JSON.
        kill: When the child is killed; by default never.

    Returns:
        The signal that ended the child, or 0, and the output: lines that the function wrote to
        the pipe, and its result, which is missing if the child was killed.
    """
    while not is_single_threaded():
        time.sleep(0.001)
    kill = kill or Kill()
    read_end, write_end = os.pipe()
    if not (child := os.fork()):
        os.write(write_end, json.dumps(work(write_end)).encode())
        os._exit(0)
    os.close(write_end)
    output, ended = b"", False
    while not ended and not kill.is_due():
        if select.select([read_end], [], [], kill.wait_seconds())[0]:
            content = os.read(read_end, 1 << 16)
            output, ended = output + content, not content
            kill.update(output)
    if not ended:
        os.kill(child, kill.by)
    with os.fdopen(read_end, "rb") as pipe:
        output += pipe.read()
    return os.WTERMSIG(os.waitpid(child, 0)[1]), output.decode()


def parsed_output(output: str) -> dict[str, Any]:
    """The points and their times, and the result unless it is missing."""
    *lines, result = output.split("\n")
    points = [line.partition(": ") for line in lines]
    return {
        "error": "",
        "messages": [],
        "failed": [],
        "points": [name for name, *_ in points],
        "times": [float(seconds) for *_, seconds in points],
        **(json.loads(result) if result.startswith("{") else {}),
    }


def main(model: str) -> None:
    torch.set_num_threads(1)
    run_in_child(lambda _: training_components.save_models(Path(model)))
    loading.load(model, torch.float32, torch.device("cpu"))  # warms the caches of all children
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        kill = Kill(**{n: request[n] for n in ("at", "after", "once", "by") if n in request})
        end_signal, output = run_in_child(lambda pipe, r=request: execute(r, model, pipe), kill)
        result = parsed_output(output)
        result |= {"signal": end_signal, "seconds": time.perf_counter() - start}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
