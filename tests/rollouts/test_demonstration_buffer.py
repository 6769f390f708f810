"""The buffer of own correct answers, and the tasks that are shown beside another one."""

import asyncio

from grupo.core.types import Group, Response, Rollout, SolvedTask, Task
from grupo.method import Method
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler, Rescue, RescueAttempt, SolvedExamples
from grupo.storage import strict_json
from grupo.training.collect.unfinished_groups import GroupInProgress


def answered(text: str, reward: float = 1.0, sampled: bool = True, **more) -> Rollout:
    response = Response((1,), (-0.5,), text=text, sampled=sampled)
    return Rollout((("?", response),), reward, **more)


def solve(history: History, prompt: str, *rollouts: Rollout, step: int = 0) -> None:
    """Append a group of the task whose key is its prompt."""
    group = Group(Task(prompt, prompt), rollouts or (answered(prompt.upper()),))
    history.append_groups(step, [group], keep_demonstrations=True)


def shown(history: History, prompt: str, count: int = 2) -> list[str]:
    """The prompts of the demonstrations for a task."""
    task = history.with_demonstrations(Task(prompt, prompt), count)
    return [solved.prompt for solved in task.demonstrations]


def test_most_similar_solved_tasks_are_shown_and_never_the_task_itself():
    history = History()
    for prompt in ("add three and four", "add three and five", "sort a list", "name a colour"):
        solve(history, prompt)
    assert shown(history, "add three and five") == ["add three and four"]
    assert shown(history, "add three and six") == ["add three and four", "add three and five"]
    assert shown(history, "add three and six", count=1) == ["add three and four"]
    assert shown(history, "divide") == []
    assert shown(History(), "add") == []
    assert shown(history, "add three", count=0) == []
    # a task alone in the buffer is no demonstration of itself
    alone = History()
    solve(alone, "add")
    assert (shown(alone, "add"), shown(alone, "add two")) == ([], ["add"])


def test_best_own_correct_answer_is_kept_and_a_later_one_replaces_it():
    history = History()
    wrong, half = answered("wrong", 0.5), answered("half", 0.6)
    given, hint = answered("given", 2.0, sampled=False), answered("hint", 2.0, role="hinter")
    failed = answered("failed", 2.0, error="hung")
    solve(history, "add one", wrong, given, hint, failed)
    assert not history.demonstrations.solved
    solve(history, "add one", half, answered("first"), answered("second"), wrong, given)
    assert history.demonstrations.solved["add one"] == SolvedTask("add one", "first")
    solve(history, "add two")
    solve(history, "add one", answered("newer"))
    assert history.demonstrations.solved["add one"].answer == "newer"
    assert [*history.demonstrations.solved] == ["add two", "add one"]


def test_nothing_is_kept_where_nothing_reads_it():
    history = History()
    history.append_groups(0, [Group(Task("a", "a"), (answered("b"),))])
    assert not history.demonstrations.solved


def test_task_that_was_solved_longest_ago_is_dropped_first(monkeypatch):
    monkeypatch.setattr("grupo.rollouts.demonstration_buffer.MAX_SOLVED_TASKS", 2)
    history = History()
    for prompt in ("add a", "add b", "add a", "add c"):
        solve(history, prompt)
    assert [*history.demonstrations.solved] == ["add a", "add c"]
    assert shown(history, "add b", 9) == ["add a", "add c"]


def test_copies_are_independent_and_the_buffer_is_restored_exactly():
    history = History()
    solve(history, "add one")
    solve(history, "sort all")
    copy = history.copy()
    assert shown(history, "add") == ["add one"]  # the index is made and then out of date
    solve(history, "add two")
    assert (shown(copy, "add"), shown(history, "add")) == (["add one"], ["add one", "add two"])
    data = strict_json.from_json(strict_json.to_json(history.to_data()))
    back = History.from_data(data, history.tensors())
    assert back == history
    assert shown(back, "add two") == shown(history, "add two") == ["add one"]


def test_prompts_of_chats_are_texts():
    history = History()
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "add one"})
    group = Group(Task("k", chat), (answered("1"),))
    history.append_groups(0, [group], keep_demonstrations=True)
    assert history.demonstrations.solved["k"].prompt == "Be brief.\n\nadd one"


def test_unfinished_group_keeps_the_demonstrations_and_statistic_states_of_its_task():
    task = Task(
        "k",
        "add",
        demonstrations=(SolvedTask("add one", "1"),),
        statistic_states={"HintLevel()": (2.0,)},
    )
    stored = GroupInProgress(task, 0, (0, 0)).to_data()
    loaded = GroupInProgress.from_data(stored, {"k": Task("k", "add")})
    assert loaded.task == task


def test_a_method_requires_as_many_demonstrations_as_its_sampler_shows():
    rescue = Rescue(
        GroupSampler(2), (RescueAttempt(SolvedExamples(1)), RescueAttempt(SolvedExamples(3)))
    )
    assert Method(sampler=rescue).requires.demonstrations == 3


def test_examples_stand_before_the_prompt_and_the_instruction_behind_it():
    solved = (SolvedTask("1 + 1 =", " 2"), SolvedTask("2 + 2 =", " 4"))
    task = Task("k", "1 + 2 =", demonstrations=solved)
    group = Group(task, (Rollout(), Rollout()))

    def asked(ask, group=group):
        return asyncio.run(ask(group, None, None)).prompts

    (prompt,) = asked(SolvedExamples(1))
    assert prompt.task.prompt == "1 + 1 = 2\n\n1 + 2 ="
    assert prompt.rng_labels == (("exemplified", 0), ("exemplified", 1))
    (prompt,) = asked(SolvedExamples(2, "{prompt}{answer}\n", " Split it."))
    assert prompt.task.prompt == "1 + 1 = 2\n2 + 2 = 4\n1 + 2 = Split it."
    bare = Group(Task("k", "1 + 2 ="), group.rollouts)
    assert asked(SolvedExamples(1), bare) == ()
    (prompt,) = asked(SolvedExamples(1, instruction="!"), bare)
    assert prompt.task.prompt == "1 + 2 =!"


class Chooser:
    """Actor whose generator always chooses the last of several."""

    def rng(self, *label):
        return self

    def choice(self, values):
        return values[-1]


def test_instruction_may_show_a_wrong_answer_of_the_group():
    failed = answered("?", error="hung")
    group = Group(Task("k", "1 + 2 ="), (answered(" {4}", 0.0), failed))
    asked = asyncio.run(SolvedExamples(1, instruction=" Not{attempt}!")(group, None, Chooser()))
    assert asked.prompts[0].task.prompt == "1 + 2 = Not {4}!"
