"""Tests of packed rows."""
