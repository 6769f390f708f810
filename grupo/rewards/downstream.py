"""Rewards of texts that another model reads: the score of the answer that follows from them."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.rewards.base import (
    Reward,
    RewardValue,
    SelfTimedReward,
    answer_rollout,
    scored_values,
)
from grupo.rewards.judges.base import ChatModel, JudgeError
from grupo.rewards.judges.scores import check_judge, judge_conversation, prepare_judge


@component
class Downstream(SelfTimedReward):
    """The reward of the answer that a model gives when it reads the rollout's text.

    The policy writes a hint or a critique, and the model answers with it in its prompt. The model
    is not trained, and needs no log-probabilities: `LocalModel` runs in this process,
    `ChatEndpoint` may be a model behind an API. A rollout fails if the model does not reply. An
    answer that the token limit cut is scored as it is.

    Args:
        model: The model that answers.
        prompt: Its user message. {completion} is the text that the policy generated; {prompt},
            {answer}, {source} and any column of the task are replaced by their text.
        reward: Scores the answer as if the policy had given it.
        extract: Finds the text for {completion} in what the policy generated; "" if there is none.
        system: The model's system message, with the same placeholders; "" for none.
    """

    model: ChatModel
    prompt: NonEmptyString
    reward: Reward
    extract: Extractor = whole_text
    system: str = ""

    def __post_init__(self) -> None:
        check_judge(self, ("completion",))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a placeholder without a column, or a model that does not work."""
        prepare_judge(self, tasks, ("completion",))

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        conversations = [
            judge_conversation(self, task, completion=self.extract(rollout.text) or "")
            for rollout in rollouts
        ]
        replies = await self.model.complete(conversations)
        answers = [reply.text for reply in replies if not isinstance(reply, JudgeError)]
        answered = [answer_rollout(task, text) for text in answers]
        values = iter(await scored_values(self.reward, task, answered) if answered else ())
        return [reply if isinstance(reply, JudgeError) else next(values) for reply in replies]


PAPER = Paper(
    title="Guiding Large Language Models via Directional Stimulus Prompting",
    use="A model that cannot be trained should answer better, and a small one can write it hints.",
    tags=("reward", "hints"),
    kind="pipeline",
    catalogue=("directional-stimulus-prompting",),
    checked=("golden",),
    source=Source(
        "code",
        "Leezekun/Directional-Stimulus-Prompting: summarization_with_hint/"
        "flan-t5_nlpo_on_supervised-cnndm_4000.yml and sft4lms/Summarization/data_loader.py",
    ),
    missing=(
        "A comparison: `recipes/real/hinted_summaries.py` has both stages, of which two steps each"
        " were tried; the order learned hints > supervised hints > none is not shown.",
        "NLPO: its mask of the likeliest tokens (top-p of 0.9) from a policy that lags behind.",
        "The critic of PPO and its value loss.",
        "Step rewards of single keywords (`step_reward_coef`), dialogue acts and triggers of chains"
        " of thought as hints, and examples in the prompt.",
    ),
    deviations=(
        "The group is the baseline (`kl_in_reward`); its controller of the KL weight has the"
        " paper's rule, with a target per token.",
        "The model gives one greedy answer to each hint; the release averages four, sampled at a"
        " temperature of 0.7.",
        "The reward is ROUGE-L alone; the release averages several kinds of ROUGE.",
        "Keywords of the supervised stage are the words of the summary that the text has; the"
        " release keeps the phrases that TextRank finds and the summary has.",
    ),
    shown=(
        "tests/rewards/judges/test_downstream.py"
        "::test_a_policy_learns_the_hints_with_which_the_model_is_right",
        "tests/rewards/judges/test_downstream.py::test_training_leaves_the_model_that_answers_as_it_is",
    ),
)
