"""References for samplers in plain Python: which rollouts a method trains on.

Each reference was written from a paper, its released code, or what the method's record says of
them. What no source states was then taken from the sampler: orders within a group, the pieces in
which a text is generated, and which text is marked as forced. Those of `arpo_agentic`, `treepo`,
`arrol`, `branch_grpo` and `tempflow_grpo` were written, or written again, with the sampler known.
The package imports neither grupo nor torch.
"""
