"""Helpers of the tests, each with tests of its own."""
