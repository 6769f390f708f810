"""Collection of groups: draw tasks, generate, score and filter, for this step or a later one."""
