"""What papers do from step to step, in plain numpy: groups, old rollouts, and numbers that change.

The files here import neither grupo nor torch. Their functions were written from papers, released
code and the methods' records, with docstrings of the components at hand; `tests/reference/steps`
compares the two. Those of task_replay.py, and those of CANON, GFPO and RiskPO's advantages, were
written after the components had been read.

dynamic_sampling.py    groups that are drawn again, and the groups that are trained on
task_choice.py         tasks of a step, and the sizes of their groups
replay.py              rollouts of earlier steps that join a batch
reference_updates.py   weights of the reference policy
controllers.py         numbers that follow a metric
schedules.py           numbers that follow the progress of the run
task_replay.py         rollouts of a task that its later groups are trained on
task_statistics.py     numbers that are kept of each task
"""
