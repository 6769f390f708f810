"""A listener: a frozen model that reads the reasoning and answers the question itself."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.rewards.base import RewardValue, SelfTimedReward, reference_text
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_on_main_thread


@component
class ListenerProbability(SelfTimedReward):
    """The probability of the true option under a frozen model, after question and reasoning.

    The listener reads the prompt, with its pictures, and the rollout's text through its last
    `answer_start`; the answer itself is cut off. The probabilities of the options are normalised.
    A rollout without `answer_start` scores 0. The further number `agrees` is 1 if the option that
    the listener finds likeliest is the text up to `answer_end` of the rollout.

    Gambashidze et al., arXiv:2506.22832.

    Args:
        listener: The model, of another family or size than the policy.
        options: Column of the tasks with the texts of the options, the reference answer among them.
        answer_start: Text that ends the reasoning and begins the answer.
        answer_end: Text that ends the answer.
    """

    listener: CausalLM
    options: NonEmptyString = "options"
    answer_start: NonEmptyString = "<answer>"
    answer_end: NonEmptyString = "</answer>"

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose options lack the reference answer."""
        for task in tasks:
            options = task.columns.get(self.options)
            if not options or reference_text(task) not in options:
                raise ConfigError(
                    f"tasks: the column {self.options!r} of task {task.key} is {options!r}."
                    f" Allowed: options, {task.reference_answer!r} among them."
                )

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        return await run_on_main_thread(lambda: self._scores(task, rollouts))

    def _scores(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardValue]:
        starts = [reasoning(rollout.text, self.answer_start) for rollout in rollouts]
        options = [str(option) for option in task.columns[self.options]]
        known = sorted({start for start in starts if start})
        by_start = dict(zip(known, self._probabilities(task, known, options), strict=True))
        true = options.index(reference_text(task))
        values: list[RewardValue] = []
        for rollout, start in zip(rollouts, starts, strict=True):
            if not start:
                values.append({"score": 0.0, "agrees": 0.0})
                continue
            p = by_start[start]
            likeliest = options[max(range(len(p)), key=p.__getitem__)]
            answer = rollout.text[len(start) :].partition(self.answer_end)[0].strip()
            values.append({"score": p[true], "agrees": float(answer == likeliest)})
        return values

    def _probabilities(
        self, task: Task, starts: Sequence[str], options: Sequence[str]
    ) -> Sequence[Sequence[float]]:
        """The probability of each option after each beginning of an answer."""
        import torch

        from grupo.inference.base import Request, generate_all

        policy = _load(self)
        tokenizer = policy.chat_tokenizer
        prompt = tokenizer.encode_observation(Rollout(), task.prompt)
        endings = [tokenizer.encode_forced(option) for option in options]
        requests = [
            Request((*prompt, *tokenizer.encode_forced(start), *ending), 0, num_scored=len(ending))
            for start in starts
            for ending in endings
        ]
        replies = generate_all(policy.weight_sync.engine(), requests) if requests else []
        logp = torch.tensor([sum(reply.logp) for reply in replies], dtype=torch.float64)
        return logp.view(-1, len(options)).softmax(-1).tolist()


def reasoning(text: str, answer_start: str) -> str:
    """The text through the last `answer_start`; "" without one.

    >>> reasoning("<think>red</think><answer>2</answer>", "<answer>")
    '<think>red</think><answer>'
    """
    before, marker, _ = text.rpartition(answer_start)
    return before + marker


@cache
def _load(reward: ListenerProbability) -> Any:
    return reward.listener.build()
