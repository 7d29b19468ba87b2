"""Programs that nobody here wrote. Under `repros watch`, none of them may give a finding.

    python -m tests.tools.foreign_programs watch --python PATH --sources FOLDER [--keep] [NAME ...]

`programs.toml` lists them: programs of public repositories, which are cloned below FOLDER, and programs in packages of
the registry. `data.py` writes random files in the place of what they would download. `--keep` puts the results into
`tests/watch/foreign.jsonl`, from which `python -m tests.tools.watch_table` fills the table of `docs/watch.md`.
"""
