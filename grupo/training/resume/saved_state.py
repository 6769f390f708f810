"""The state of a run in a checkpoint: tensors, and plain data with the fields `DATA_FIELDS`."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch import Tensor

from grupo.algo.optimizers.averaging import AveragingOptimizer, use_averaged_weights
from grupo.algo.optimizers.state import optimizer_tensors, restore_optimizer
from grupo.models.aux_heads import head_weights, load_head_weights
from grupo.rollouts.history import History
from grupo.rollouts.replay_buffer import REPLAY_BUFFER
from grupo.storage.checkpoint import Checkpoint
from grupo.training.collect.unfinished_groups import restore_groups
from grupo.training.resume.state import State
from grupo.util.sharded_tensors import sharded_like


def state_tensors(state: State) -> dict[str, Mapping[str, Tensor]]:
    """Return the tensors of a checkpoint: for each file, a mapping of tensors by name.

    The file `weights` holds the weights that are evaluated and exported. With an averaging
    optimizer, these are averages. The weights at which gradients are computed are then in the
    optimizer's file. A resume first loads the averages into the policy, and `restore_optimizer`
    then overwrites them.

    The file `ema` holds the moving average of `Recipe.ema`, which training does not read.
    """
    optimizers = {name: optimizer_tensors(opt) for name, opt in state.optimizers.items()}
    weights, aux_heads = _evaluated_weights(state)
    optional = {
        "aux_heads": aux_heads,
        "reference": state.aux_models.reference_weights,
        "ema": state.ema_weights,
        REPLAY_BUFFER: state.replay_buffer.tensors(),
    }
    return {
        "weights": weights,
        **optimizers,
        "history": state.history.tensors(),
        **{name: tensors for name, tensors in optional.items() if tensors},
    }


def _evaluated_weights(state: State) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """Return the weights of the policy and of its heads that are evaluated and exported.

    With an `AveragingOptimizer`, the evaluated weights are averages. The `with` block writes the
    averages into the parameters, and its end writes the other weights back. The result is therefore
    a copy.
    """
    optimizers = state.optimizers.values()
    weights, aux_heads = state.policy.weights(), head_weights(state.policy.aux_heads)
    if not any(isinstance(x, AveragingOptimizer) for x in optimizers):
        return weights, aux_heads
    with use_averaged_weights(*optimizers):
        return _clone_all(weights), _clone_all(aux_heads)


def state_data(state: State) -> dict[str, Any]:
    """Return the plain data of a checkpoint: JSON data, in which inf and NaN may occur.

    Some of the values are objects of the state: store or copy them before the state changes.
    """
    return {
        "history": state.history.to_data(),
        **{name: field.value_of(state) for name, field in DATA_FIELDS.items()},
    }


def restore_state(state: State, checkpoint: Checkpoint) -> None:
    """Restore the tensors and the plain data of a checkpoint."""
    tensors = checkpoint.tensors
    data = checkpoint.data
    state.policy.load(tensors["weights"])
    load_head_weights(state.policy.aux_heads, tensors.get("aux_heads", {}))
    for name, optimizer in state.optimizers.items():
        restore_optimizer(optimizer, tensors[name])
    state.aux_models.restore(tensors.get("reference", {}))
    for name, average in state.ema_weights.items():
        average.copy_(sharded_like(average, tensors["ema"][name]))
    state.history = History.from_data(
        data["history"],
        tensors["history"],
        # the statistics come from the recipe; a checkpoint holds only their states
        state.history.statistics_by_task.statistics,
        state.history.statistics_by_source.statistics,
    )
    state.replay_buffer.restore(tensors.get(REPLAY_BUFFER, {}))
    state.step = checkpoint.step
    for name, field in DATA_FIELDS.items():
        field.set_in(state, data[name])
    if checkpoint.skipped_checkpoints:
        # A newer checkpoint, or the file `latest`, was damaged. This older checkpoint may say
        # `finished`, from before the run was extended. The trainer decides again.
        state.finished, state.stop_reason = False, ""


@dataclass(frozen=True)
class DataField:
    """A field of the plain data of a checkpoint.

    Args:
        value_of: Returns the value of the field in a state, which may be an object of the state.
        set_in: Sets the field of a state to a copy of a value.
    """

    value_of: Callable[[State], Any]
    set_in: Callable[[State, Any], None]


def _attribute(name: str) -> DataField:
    """Return the `DataField` for an attribute of the state whose value is JSON data."""
    # `set_in` copies the value, because the state changes its mappings in place
    return DataField(attrgetter(name), lambda state, value: setattr(state, name, copy(value)))


def _set_tokens_per_microbatch(state: State, tokens: int) -> None:
    state.policy.tokens_per_microbatch = tokens


def _set_unfinished_groups(state: State, data: Sequence[Any]) -> None:
    state.unfinished_groups = restore_groups(data, state.tasks)


# the plain data of a checkpoint without "history", which `state_data` adds, and without the step,
# which is a field of `Checkpoint`
DATA_FIELDS: Mapping[str, DataField] = {
    "eval_scores": _attribute("eval_scores"),
    "generated_tokens": _attribute("generated_tokens"),
    "failed_rollouts": _attribute("failed_rollouts"),
    "total_seconds": _attribute("total_seconds"),
    "training_seconds": _attribute("training_seconds"),
    "metric_totals": _attribute("metric_totals"),
    "sampler_logp_diff": _attribute("sampler_logp_diff"),
    "tokens_per_microbatch": DataField(
        lambda state: state.policy.tokens_per_microbatch, _set_tokens_per_microbatch
    ),
    "rollout_queue": DataField(
        lambda state: state.rollout_queue.to_data(),
        lambda state, data: state.rollout_queue.restore(data, state.tasks),
    ),
    "unfinished_groups": DataField(
        lambda state: [group.to_data() for group in state.unfinished_groups],
        _set_unfinished_groups,
    ),
    "kl": _attribute("early_stopping_kl"),
    "stop_reason": _attribute("stop_reason"),
    "finished": _attribute("finished"),
}


def _clone_all(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}
