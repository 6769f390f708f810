"""Teacher feedback: the text of a teacher is appended to some answers of the policy."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import Fraction
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.independent import GroupSampler
from grupo.rollouts.samplers.rethinking import without_end

TEACHER_ROLE = "teacher"  # the role of the policy that gives feedback


@component
class TeacherFeedback(GroupSampler):
    """Independent rollouts; the feedback of a teacher is appended to some of them before scoring.

    The policy of the role `teacher`, or the policy itself if the recipe gives no policy to this
    role, reads the prompt and the answer, and generates feedback. The feedback replaces the end
    token of the answer. It is trained on, and marked as not sampled. The metrics count the
    teacher's tokens under the role `teacher`.

    ThinkTuning, RRV et al. (arXiv:2508.07616).

    Args:
        group_size: Number of rollouts in a group.
        turn_strategy: Generates the response to one observation.
        share: Probability that an answer gets feedback; may be a schedule.
        request: Text at the end of the teacher's prompt, with the field {answer}.
    """

    share: Fraction = 0.1
    request: str = (
        "\n\nAnswer of a student: {answer}\n\nContinue the student's answer: check it, say what is"
        " wrong in it, and end with the solution.\n"
    )

    provides = Provides(roles=(TEACHER_ROLE,))  # so a recipe may give this role a policy

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        count = task.group_size or self.group_size
        rollouts = await asyncio.gather(
            *(self._generate(task, env, actor.fork(i)) for i in range(count))
        )
        return await score_group(task, env, rollouts)

    async def _generate(self, task: Task, env: Env, actor: Actor) -> Rollout:
        rollout = await run_rollout(task, env, actor, turn_strategy=self.turn_strategy)
        if not rollout.length or actor.rng("teacher").random() >= self.share:
            return rollout
        teacher_task = append_to_prompt(task, self.request.replace("{answer}", rollout.text))
        observation = await initial_observation(teacher_task, env)
        empty = Rollout(role=TEACHER_ROLE)  # the role selects the policy that generates
        feedback = await actor.fork("teacher")(empty, observation)
        return await append_to_last_response(actor, rollout, feedback.text)


async def append_to_last_response(actor: Actor, rollout: Rollout, text: str) -> Rollout:
    """The rollout with a text at the end of its last answer, as a response that is not sampled.

    Args:
        actor: Encodes the text.
        rollout: The rollout. If its last answer ends with an end token, the token is removed.
        text: The text; with "", the rollout is returned unchanged.
    """
    if not text:
        return rollout
    rollout = without_end(rollout, actor)
    return rollout.append_turn("", await actor.append_unsampled(rollout, "", text))
