"""Programs of other authors: runs under the watch, and runs on simulated GPUs.

    python -m tools.measure.foreign_programs watch --python PATH --sources FOLDER [--keep] [NAME ...]
    python -m tools.measure.foreign_programs simulate --python PATH --sources FOLDER [--keep] [NAME ...]
    python -m tools.measure.foreign_programs documented --python '.../{stack}/bin/python' --sources FOLDER [--keep]
    python -m tools.measure.foreign_programs traincheck --python '.../{stack}/bin/python' --sources FOLDER [--keep]

`programs.toml` lists them: programs of public repositories, which are cloned below FOLDER, and programs in packages of
the registry; `requirements.txt` is what they need, `requirements_hugging_face.txt` what the examples of Hugging Face's
libraries need. `data.py` and `examples.py` write random files and tiny models in the place of what they would download.
`--keep` puts the results into `tests/diagnose/watch/foreign.jsonl` and `tests/simulate/foreign.jsonl`, from which
`python -m tools.measure.watch_table` and `python -m tools.measure.simulate_table` fill the tables of `docs/watch.md`
and
`docs/simulate.md`.

`documented.toml` lists programs that are not healthy: code of those who reported a failure of the catalogue. Code
blocks of threads are downloaded from GitHub below FOLDER. The results are in `tests/simulate/documented.jsonl`, from
which `python -m tools.measure.documented_table` fills the table of `docs/simulate.md`.

`traincheck.toml` lists the errors that TrainCheck's authors have published, with their programs. The results are in
`tests/diagnose/watch/traincheck.jsonl`, from which `python -m tools.measure.watch_table` fills the table of
`docs/watch.md`.
"""
