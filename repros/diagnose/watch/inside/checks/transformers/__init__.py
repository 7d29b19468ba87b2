"""Checks of Hugging Face transformers: collators, tokenizers and the Trainer."""
