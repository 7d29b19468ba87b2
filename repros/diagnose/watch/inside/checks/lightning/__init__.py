"""Checks of Lightning's Trainer."""
