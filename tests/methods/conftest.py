"""What tests of methods share: `recorded`."""
