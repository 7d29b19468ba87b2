"""Checks of Hugging Face TRL: preference training."""
