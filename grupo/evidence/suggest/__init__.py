"""Suggestions of methods: rules from answers, or from the metrics of a run, and evidence."""
