"""Checks of Hugging Face PEFT: adapters."""
