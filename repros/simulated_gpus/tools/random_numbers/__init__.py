"""Which operators draw CUDA's random numbers, and the numbers that public threads, code and tests print for a seed.

`operators.json` and `published.json` are what `tests/test_random.py` checks, and what the parts of `docs/simulate.md`
about them are made of:

    python -m repros.simulated_gpus.tools.random_numbers docs/simulate.md
"""
