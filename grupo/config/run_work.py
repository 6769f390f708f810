"""The work of a run: its steps and its evaluations, and the time that these take."""

from dataclasses import dataclass, replace
from functools import cached_property

from grupo.config.defaults import TaskLengths
from grupo.config.memory_estimate import (
    FLOAT32,
    cache_capacity,
    has_kernels,
    max_context_tokens,
)
from grupo.config.step_size import StepSize, step_size, supervised_step_size
from grupo.config.supervised import column_sampler, sampler_for_demonstration_scores
from grupo.config.time_estimate import (
    EFFICIENCY,
    DeviceSpeed,
    forward_flops,
    generation_seconds,
    passes_of_update,
)
from grupo.kernels.prefix_cache import MAX_FILL
from grupo.models.causal_lm import CausalLM
from grupo.models.model_size import ModelSize
from grupo.recipe import Recipe

DISK_BANDWIDTH = 5e8  # bytes per second that are read and written: a slow SSD


@dataclass(frozen=True)
class RunTime:
    """Estimated seconds of the parts of a run.

    Args:
        step: A training step.
        evaluation: An evaluation.
        disk: Loading the model and saving all checkpoints.
        num_steps: Training steps.
        num_evaluations: Evaluations before, during and after training.
    """

    step: float
    evaluation: float
    disk: float
    num_steps: int
    num_evaluations: int

    @property
    def total(self) -> float:
        """The whole run."""
        return self.num_steps * self.step + self.evaluations + self.disk

    @property
    def evaluations(self) -> float:
        """All evaluations."""
        return self.num_evaluations * self.evaluation


@dataclass(frozen=True)
class RunWork:
    """The work of a run; prompts have their mean length, and answers reach their limit.

    Args:
        recipe: The recipe; its policy is a `CausalLM`.
        model: The size of its model.
        lengths: Numbers and lengths of its tasks.
        compute_bytes: Bytes of a number in the policy's compute dtype on its device.
        on_cpu: Whether the device is the CPU.
        ranks: Processes that share the rollouts of each step and evaluation.
    """

    recipe: Recipe
    model: ModelSize
    lengths: TaskLengths
    compute_bytes: int
    on_cpu: bool
    ranks: int = 1

    @cached_property
    def rollouts(self) -> StepSize:
        """The size of a step of rollouts."""
        context = self.model.context_length
        return step_size(self.recipe, min(self.lengths.mean_prompt, context), context)

    @cached_property
    def step(self) -> StepSize:
        """The size of a training step."""
        if not column_sampler(self.recipe.method):
            return self.rollouts
        row = min(self.lengths.mean_row, self.model.context_length)
        return supervised_step_size(self.recipe, row)

    @property
    def num_evaluations(self) -> int:
        """Evaluations before training, between its steps, and after it."""
        every = self.recipe.evaluation.every
        return (2 + ((self.recipe.max_steps - 1) // every if every else 0)) * bool(
            self.lengths.held_out
        )

    def evaluation(self, num_tasks: int, attempts: int) -> StepSize:
        """The size of an evaluation with greedy and sampled answers to the same prompts."""
        used = num_tasks * bool(attempts)
        return replace(self.rollouts, prompts=used, rollouts=(1 + attempts) * used)

    def _evaluation_generations(self, num_tasks: int, attempts: int) -> list[StepSize]:
        """The sizes of the generations of an evaluation.

        Greedy and sampled answers share the computation of the prompts if the prefix cache of the
        engine holds all of them.
        """
        both = self.evaluation(num_tasks, attempts)
        limit = max_context_tokens(self.model, self.compute_bytes, on_cpu=self.on_cpu)
        if both.prompts * both.prompt <= MAX_FILL * limit:
            return [both]
        return [replace(both, rollouts=n * both.prompts) for n in (1, attempts)]

    def evaluation_frac(self, num_tasks: int, attempts: int) -> float:
        """The fraction of the operations of a run that all evaluations take.

        Unlike a time, it depends on no probe of the device.

        Args:
            num_tasks: Number of held-out tasks.
            attempts: Sampled answers to each of them.
        """
        sizes = self._evaluation_generations(num_tasks, attempts)
        evaluations = self.num_evaluations * sum(forward_flops(self.model, x) for x in sizes)
        passes = self.step.generates + self._passes_of_update
        training = self.recipe.max_steps * passes * forward_flops(self.model, self.step)
        return evaluations / (evaluations + training)

    def time(self, speed: DeviceSpeed) -> RunTime:
        """The time of the run on a device of this speed, or with several ranks on one each."""
        attempts = self.recipe.evaluation.attempts
        sizes = self._evaluation_generations(self.lengths.held_out, attempts)
        update = self._passes_of_update * self._forward_seconds(self.step, speed)
        return RunTime(
            step=self._generation_seconds(self.step, speed) + update,
            evaluation=sum(self._generation_seconds(size, speed) for size in sizes)
            + self._demonstration_seconds(speed),
            disk=self._disk_bytes / DISK_BANDWIDTH,
            num_steps=self.recipe.max_steps,
            num_evaluations=self.num_evaluations,
        )

    @property
    def _passes_of_update(self) -> float:
        policy = self.recipe.policy
        assert isinstance(policy, CausalLM)
        kernels = has_kernels(policy, self.model, self.compute_bytes, on_cpu=self.on_cpu)
        reused = cache_capacity(self.model) / max(self._share_of_rank(self.step).tokens, 1)
        reused_frac = min(reused, 1.0) * (kernels and self.step.generates)
        return passes_of_update(self.recipe, reused_frac=reused_frac)

    def _generation_seconds(self, step: StepSize, speed: DeviceSpeed) -> float:
        share = self._share_of_rank(step)
        return generation_seconds(self.model, share, speed, self.compute_bytes)

    def _forward_seconds(self, step: StepSize, speed: DeviceSpeed) -> float:
        return forward_flops(self.model, self._share_of_rank(step)) / (EFFICIENCY * speed.flops)

    def _share_of_rank(self, size: StepSize) -> StepSize:
        """The part of a step or an evaluation that one rank generates and trains on."""
        prompts, rollouts = (-(-n // self.ranks) for n in (size.prompts, size.rollouts))
        return replace(size, prompts=prompts, rollouts=rollouts)

    def _demonstration_seconds(self, speed: DeviceSpeed) -> float:
        """Seconds of scoring the held-out demonstrations once."""
        if not sampler_for_demonstration_scores(self.recipe):
            return 0.0
        rows = replace(self.step, rollouts=self.lengths.held_out)
        return self._forward_seconds(rows, speed)

    @property
    def _disk_bytes(self) -> float:
        """Bytes of the model that is loaded, and of all checkpoints that are saved."""
        policy = self.recipe.policy
        assert isinstance(policy, CausalLM)
        trained = self.model.num_parameters
        if lora := policy.lora:
            trained = self.model.num_adapter_parameters(lora.rank, lora.targets)
        saves = -(-self.recipe.max_steps // self.recipe.save_every)
        saved = saves * trained * (FLOAT32 + self.recipe.optimizer.state_bytes)
        return FLOAT32 * self.model.num_parameters + saved
