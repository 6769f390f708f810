"""What tests of storage share: `saving`."""
