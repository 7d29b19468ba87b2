#!/bin/sh
# What this project's CI runs.
set -eux
python -m repros run --stack home --catalogue failures --allow-empty --results .repros/ci.jsonl
python -m repros matrix --catalogue failures --stack acme-2026 --check --keep
python -m repros audit pyproject.toml || test $? -eq 1
python -m pytest -p no:cacheprovider --junitxml=junit.xml .
python -m pytest -p no:cacheprovider failures --repro-stack acme-2026
