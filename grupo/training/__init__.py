"""The training loop, over its phases: `collect` groups, `update` the policy, `resume` a run."""
