"""A process that trains and resumes runs in child processes, and kills them on request.

Requests and results are lines of JSON. torch and transformers are loaded once; each child is forked
from a single-threaded process that has computed nothing, so that a run costs a third of a second.
"""

import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from grupo.models import loading
from grupo.rollouts.task_history import TaskHistoryStore
from grupo.storage import fault_injection
from grupo.training.callbacks import NullCallback
from grupo.training.state import State
from grupo.training.trainer import reopen_trainer, resume, train
from tests.helpers import training_components, training_recipes

Request = Mapping[str, Any]
NEVER = 3600.0


class PointRecorder(str):
    """A value of `KILL_AT` that kills nothing and records the name of every point."""

    names: list[str] = []  # noqa: RUF012

    def startswith(self, prefix, *_):
        self.names.append(prefix.removesuffix(":"))
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
        "curriculum": lambda: setattr(history, "tasks_drawn", 0),
        "task history": lambda: setattr(history, "task_histories", TaskHistoryStore()),
        "replays": history.replay_rollouts.clear,
        "scores": state.eval_scores.clear,
        "counts": lambda: setattr(state, "generated_tokens", 0),
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
        reference: Any = trainer.learner.aux_models.scorers["ref"]
        reference.module.requires_grad_(True)
        reference.load(trainer.policy.weights())
        trainer()


def execute(request: Request, model: str) -> Mapping[str, Any]:
    """Execute a request in a child process; returns the result unless the child is killed."""
    torch.set_num_threads(request.get("threads", 1))
    loading.has_bfloat16 = lambda device: True  # also on devices that emulate it
    fault_injection.KILL_AT = request.get("kill", "") or PointRecorder()
    callback, run = MessageRecorder(), request["run"]
    if "limit" in request:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], request["limit"]))
    actions = {
        "train": lambda: train(training_recipes.recipe(request["recipe"], model), run, callback),
        "resume": lambda: resume(run, callback),
        "resume corrupted": lambda: resume_corrupted(run, request["corruption"], callback),
        "resume with later reference": lambda: resume_with_later_reference(run, callback),
    }
    error = ""
    try:
        actions[request["do"]]()
    except BaseException as raised:  # the child must not run the parent's code
        error = f"{type(raised).__name__}: {raised}"
    return {"error": error, "messages": callback.messages, "points": PointRecorder.names}


def is_single_threaded() -> bool:
    """True if the process has one thread, so that forking is safe."""
    tasks = Path("/proc/self/task")
    return threading.active_count() == 1 and (not tasks.exists() or len(list(tasks.iterdir())) == 1)


def run_in_child(
    work: Callable[[], Any], after: float = NEVER, once: str = "", by: int = signal.SIGKILL
) -> tuple[int, str]:
    """Run a function in a child process.

    Args:
        work: The function; its result must be JSON.
        after: Seconds after which the child is sent a signal.
        once: A file that must also exist before that; "" for none.
        by: The signal.

    Returns:
        The signal that ended the child, or 0, and the result as JSON, "" if there is none.
    """
    while not is_single_threaded():
        time.sleep(0.001)
    read_end, write_end = os.pipe()
    if not (child := os.fork()):
        os.write(write_end, json.dumps(work()).encode())
        os._exit(0)
    os.close(write_end)
    ended = bool(select.select([read_end], [], [], after)[0])
    while not ended and once and not os.path.exists(once):
        ended = bool(select.select([read_end], [], [], 0.001)[0])
    if not ended:
        os.kill(child, by)
    with os.fdopen(read_end) as pipe:
        output = pipe.read()
    return os.WTERMSIG(os.waitpid(child, 0)[1]), output


def main(model: str) -> None:
    torch.set_num_threads(1)
    run_in_child(lambda: training_components.save_models(Path(model)))
    loading.load(model, torch.float32, torch.device("cpu"))  # warms the caches of all children
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        kill_options = {name: request[name] for name in ("after", "once", "by") if name in request}
        end_signal, output = run_in_child(lambda r=request: execute(r, model), **kill_options)
        result = {"error": "", "messages": [], "points": []}
        result |= json.loads(output) if output else {}
        result |= {"signal": end_signal, "seconds": time.perf_counter() - start}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
