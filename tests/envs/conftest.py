"""What tests of worlds share: `judging`."""
