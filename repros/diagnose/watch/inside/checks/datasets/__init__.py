"""Checks of Hugging Face datasets."""
