"""Checks of Hugging Face accelerate."""
