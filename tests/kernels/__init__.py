"""Kernels that the meter is tried on: broken ones, and correct but unusual ones."""
