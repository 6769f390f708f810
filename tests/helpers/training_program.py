"""A process that trains and resumes in children of its own, and kills them when it is told to.

A line of JSON in, a line out. torch and transformers are loaded once, and each child is forked from
a process of one thread that has computed nothing: a run costs a third of a second.
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
from grupo.training import state as saved
from grupo.training.callbacks import NullCallback
from grupo.training.trainer import reopen_trainer, resume, train
from tests.helpers import training_components, training_recipes

Request = Mapping[str, Any]
NEVER = 3600.0


class Passed(str):
    """A place to die at that is never reached, and writes down every one that is."""

    names: list[str] = []  # noqa: RUF012

    def startswith(self, prefix, *_):
        self.names.append(prefix.removesuffix(":"))
        return False


class Notes(NullCallback):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_message(self, line: str) -> None:
        self.lines.append(line)


def forgotten(state: saved.State) -> Mapping[str, Callable[[], Any]]:
    """Ways to restore a state badly."""
    history = state.history
    return {
        "optimizer": state.optimizers["optimizer"].state.clear,
        "curriculum": lambda: setattr(history, "asked", 0),
        "past": lambda: setattr(history, "task_histories", TaskHistoryStore()),
        "replays": history.replay_rollouts.clear,
        "scores": state.eval_scores.clear,
        "counts": lambda: setattr(state, "tokens", 0),
        "step": lambda: setattr(state, "step", state.step - 1),
        "weights": lambda: next(iter(state.policy.parameters())).data.view(-1)[0].mul_(1 + 2**-23),
    }


def resume_badly(run: str, forget: str, watcher: Notes) -> None:
    trainer = reopen_trainer(Path(run), watcher)
    with trainer.lock:
        trainer.restore()
        forgotten(trainer.state)[forget]()
        trainer()


def resume_against(run: str, watcher: Notes) -> None:
    """With the checkpoint's weights as the reference, not those that training found."""
    trainer = reopen_trainer(Path(run), watcher)
    with trainer.lock:
        trainer.restore()
        reference: Any = trainer.learner.aux_models.scorers["ref"]
        reference.module.requires_grad_(True)
        reference.load(trainer.policy.weights())
        trainer()


def done(request: Request, model: str) -> Mapping[str, Any]:
    """What a child did, if it lived to say so."""
    loading.has_bfloat16 = lambda device: True  # where it is but imitated, too
    fault_injection.KILL_AT = request.get("kill", "") or Passed()
    watcher, run = Notes(), request["run"]
    if "limit" in request:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], request["limit"]))
    works = {
        "train": lambda: train(training_recipes.recipe(request["recipe"], model), run, watcher),
        "resume": lambda: resume(run, watcher),
        "resume badly": lambda: resume_badly(run, request["forget"], watcher),
        "resume against": lambda: resume_against(run, watcher),
    }
    error = ""
    try:
        works[request["do"]]()
    except BaseException as raised:  # nothing may get out of the child
        error = f"{type(raised).__name__}: {raised}"
    return {"error": error, "said": watcher.lines, "passed": Passed.names}


def alone() -> bool:
    """Is this process of one thread, so that forking it is safe?"""
    tasks = Path("/proc/self/task")
    return threading.active_count() == 1 and (not tasks.exists() or len(list(tasks.iterdir())) == 1)


def in_a_child(
    work: Callable[[], Any], after: float = NEVER, once: str = "", by: int = signal.SIGKILL
) -> tuple[int, str]:
    """The signal that ended a process doing this work, or 0, and what it said.

    After so many seconds, and once there is such a file, it is sent the signal `by`.
    """
    while not alone():
        time.sleep(0.001)
    ours, its = os.pipe()
    if not (child := os.fork()):
        os.write(its, json.dumps(work()).encode())
        os._exit(0)
    os.close(its)
    over = bool(select.select([ours], [], [], after)[0])
    while not over and once and not os.path.exists(once):
        over = bool(select.select([ours], [], [], 0.001)[0])
    if not over:
        os.kill(child, by)
    with os.fdopen(ours) as pipe:
        said = pipe.read()
    return os.WTERMSIG(os.waitpid(child, 0)[1]), said


def main(model: str) -> None:
    torch.set_num_threads(1)
    in_a_child(lambda: training_components.plant(Path(model)))
    loading.load(model, torch.float32, torch.device("cpu"))  # what is cached, is so for all
    for line in sys.stdin:
        request = json.loads(line)
        began = time.perf_counter()
        when = {name: request[name] for name in ("after", "once", "by") if name in request}
        ended, said = in_a_child(lambda r=request: done(r, model), **when)
        answer = {"error": "", "said": [], "passed": [], **(json.loads(said) if said else {})}
        answer |= {"signal": ended, "seconds": time.perf_counter() - began}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
