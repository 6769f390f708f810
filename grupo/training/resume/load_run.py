"""Loads a run's policy from one of its checkpoints: the newest, the best or a given step."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from grupo.models.aux_heads import load_head_weights
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.eval_scores import best_steps
from grupo.storage import checkpoint, checkpoint_dirs, manifest
from grupo.storage.checkpoint import Checkpoint, CorruptRun
from grupo.storage.manifest import InvalidCheckpoint
from grupo.training.resume.checkpoint_data import check_contents
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError, suggest
from grupo.util.run_files import CHECKPOINTS_FOLDER

LAST = "last"  # values of `choice`
BEST = "best"
TRAINED = "trained"  # values of `weights`
AVERAGED = "ema"


def load_policy(run: Path, choice: str = LAST, weights: str = TRAINED) -> tuple[Policy, Recipe]:
    """The policy of a run and its recipe.

    Args:
        run: The folder of the run.
        choice: The checkpoint whose weights are loaded: "last" for the newest intact checkpoint,
            "best" for the one with the best evaluation by `keep.metric`, or the number of a step.
        weights: "trained", or "ema" for the moving average of the policy's weights. Auxiliary heads
            have no average: their trained weights are loaded in both cases.

    Raises:
        ConfigError: The run has no such checkpoint, or no moving average.
        CorruptRun: The checkpoint is damaged.
    """
    recipe = RunFolder.open(run).recipe
    loaded_checkpoint = load_checkpoint(run, recipe, choice)
    return policy_of(recipe, loaded_checkpoint, weights), recipe


def policy_of(recipe: Recipe, loaded_checkpoint: Checkpoint, weights: str = TRAINED) -> Policy:
    """The policy of a recipe with the weights of a checkpoint, auxiliary heads included.

    Args:
        recipe: The recipe of the run.
        loaded_checkpoint: The checkpoint.
        weights: As for `load_policy`.

    Raises:
        ConfigError: `weights` is another text, or the run has no moving average.
    """
    if weights not in (TRAINED, AVERAGED):
        raise ConfigError(f"weights: {weights!r}. {suggest(weights, (TRAINED, AVERAGED))}")
    if weights == AVERAGED and not recipe.ema:
        raise ConfigError(f"weights: {weights!r}, and the run has no ema. Allowed: {TRAINED}.")
    policy = recipe.policy.build()
    heads = policy.attach_heads(recipe.method.requires.heads)
    policy.load(loaded_checkpoint.tensors["ema" if weights == AVERAGED else "weights"])
    load_head_weights(heads, loaded_checkpoint.tensors.get("aux_heads", {}))
    return policy


def load_checkpoint(run: Path, recipe: Recipe, choice: str = LAST) -> Checkpoint:
    """A checkpoint of a run.

    Args:
        run: The folder of the run.
        recipe: The recipe of the run.
        choice: "last", "best" or the number of a step.

    Raises:
        ConfigError: There is no such checkpoint. Or a GGUF file that the recipe names is gone or
            has changed, so that the adapters in the checkpoint no longer fit it.
        CorruptRun: The checkpoint is damaged; for "last", every checkpoint of the run.
    """
    RunFolder.open(run).stored_recipe.check_model_files()
    if choice != BEST and choice != LAST and not choice.isdecimal():
        raise ConfigError(f"checkpoint: {choice!r}. Allowed: best, last or the number of a step.")
    folder = run / CHECKPOINTS_FOLDER
    if choice.isdecimal():
        return _load_step(folder, int(choice))
    last = checkpoint.load_newest(folder, check_contents)
    if choice == LAST:
        return last
    best = _best_saved_step(folder, recipe, last)
    return last if best == last.step else _load_step(folder, best)


def find_checkpoint(run: Path, recipe: Recipe, choice: str) -> tuple[Path, Mapping[str, str]]:
    """The folder of an intact checkpoint, and the SHA-256 of each of its files.

    Args:
        run: The folder of the run.
        recipe: The recipe of the run.
        choice: "last", "best" or the number of a step.

    Raises:
        ConfigError: As for `load_checkpoint`.
        CorruptRun: As for `load_checkpoint`. Or the checkpoint was removed or changed while it was
            read.
    """
    step = load_checkpoint(run, recipe, choice).step
    for path in _folders_of_step(run / CHECKPOINTS_FOLDER, step):
        with suppress(InvalidCheckpoint):
            files = manifest.verify_files(path).files
            return path, {name: digest.sha256 for name, digest in files.items()}
    raise CorruptRun(
        f"checkpoint: step {step} in {run} was removed or changed while it was read. Try again."
    )


def _best_saved_step(folder: Path, recipe: Recipe, last: Checkpoint) -> int:
    """The step with the best evaluation among the steps with a checkpoint."""
    evaluations = last.data["eval_scores"]
    ranked_steps = best_steps(
        evaluations, num_steps=last.step, metric=recipe.keep.metric, count=len(evaluations)
    )
    # With `keep.best`, the run kept the best step: if it is missing now, loading it must fail.
    if recipe.keep.best:
        steps = ranked_steps[:1]
    else:
        steps = [step for step in ranked_steps if step in _saved_steps(folder)]
    if not steps:
        raise ConfigError(
            f"checkpoint: no step with a checkpoint in {folder} was evaluated"
            f" ({recipe.keep.metric}). Allowed: last, or one of the steps"
            f" {_list_steps(_saved_steps(folder))}. To have a best one, train with evaluation.every"
            " and keep.best."
        )
    return steps[0]


def _load_step(folder: Path, step: int) -> Checkpoint:
    """The newest intact checkpoint of a step.

    Raises:
        ConfigError: The step has no checkpoint.
        CorruptRun: Every checkpoint of the step is damaged.
    """
    paths = _folders_of_step(folder, step)
    if not paths:
        raise ConfigError(
            f"checkpoint: {folder} has none of step {step}."
            f" Allowed: best, last or one of the steps {_list_steps(_saved_steps(folder))}."
        )
    problems: list[str] = []
    for path in paths:
        try:
            loaded = checkpoint.load_single(path)
            check_contents(loaded)
            return loaded
        except InvalidCheckpoint as problem:
            problems.append(str(problem))
    raise CorruptRun(f"checkpoint: {'; '.join(problems)}. Choose another one, or put back a copy.")


def _folders_of_step(folder: Path, step: int) -> list[Path]:
    """The folders of the checkpoints of a step, newest first.

    A step has several if the run trained it again and was killed before it removed the older one.
    """
    paths = checkpoint_dirs.newest_first(folder)
    return [path for path in paths if checkpoint_dirs.step_and_repeat(path)[0] == step]


def _saved_steps(folder: Path) -> list[int]:
    folders = checkpoint_dirs.newest_first(folder)
    return sorted({checkpoint_dirs.step_and_repeat(path)[0] for path in folders})


def _list_steps(steps: list[int]) -> str:
    return ", ".join(map(str, steps)) or "(none was saved)"
