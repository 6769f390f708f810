"""What tests of storage share: `checkpointed_modules`."""
