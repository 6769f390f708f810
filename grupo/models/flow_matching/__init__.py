"""Parts of a flow-matching policy: backbone, SDE steps, sampler, evaluator, weight sync."""
