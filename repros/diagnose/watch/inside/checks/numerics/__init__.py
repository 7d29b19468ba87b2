"""Checks of numbers that are infinite or not a number, whatever library computes them."""
