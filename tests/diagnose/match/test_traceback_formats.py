"""Tracebacks as Python, IPython, pytest and rich print them become exception chains."""

from __future__ import annotations

from tests.diagnose.match.chains import chains


def test_a_group() -> None:
    text = """
  + Exception Group Traceback (most recent call last):
  |   File "/home/user/train.py", line 9, in <module>
  |     main()
  | ExceptionGroup: two shards failed (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/user/train.py", line 5, in shard
    |     read()
    | OSError: disk quota
    +---------------- 2 ----------------
    | RuntimeError: bad checksum
    +------------------------------------
"""
    assert chains(text) == [
        [
            (None, 4, "builtins.ExceptionGroup", "two shards failed (2 sub-exceptions)", ["<module>"]),
            ("group", 9, "builtins.OSError", "disk quota", ["shard"]),
            ("group", 11, "builtins.RuntimeError", "bad checksum", []),
        ]
    ]


def test_a_notebook() -> None:
    text = """
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 2
      1 from train import main
----> 2 main()

File ~/project/train.py:12, in main(variant)
     11 def main(variant):
---> 12     Trainer().fit(RuntimeError)

File /env/lib/python3.11/site-packages/torch/optim/adamw.py:171, in AdamW.step(self, closure)
    169 loss = None
--> 171 raise RuntimeError(
    172     "no: yes")

RuntimeError: no: yes
and more
"""
    assert chains(text) == [[(None, 16, "builtins.RuntimeError", "no: yes\nand more", ["<module>", "main", "step"])]]


def test_an_old_notebook() -> None:
    text = """
ValueError                                Traceback (most recent call last)
<ipython-input-1-26fd7a1a9bd6> in <module>
----> 1 fit()

~/project/train.py in fit(self, x)
     11 def fit():
ValueError: no
"""
    assert chains(text) == [[(None, 7, "builtins.ValueError", "no", ["<module>", "fit"])]]


def test_pytest_in_full_and_its_summary() -> None:
    text = """
_________________________________ test_training _________________________________

    def test_training():
>       main()

test_training.py:5:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def main():
>       raise RuntimeError("no backend\\nat all")
E       RuntimeError: no backend
E       at all

train.py:8: RuntimeError
=========================== short test summary info ============================
FAILED test_training.py::test_training - RuntimeError: no back...
"""
    assert chains(text) == [[(None, 11, "builtins.RuntimeError", "no backend\n    at all", ["test_training", "main"])]]


def test_pytest_in_short() -> None:
    text = """
train.py:8: in main
    load()
/env/lib/python3.11/site-packages/torch/a.py:3: in load
    raise RuntimeError("no")
E   RuntimeError: no
"""
    assert chains(text) == [[(None, 5, "builtins.RuntimeError", "no", ["main", "load"])]]


def test_a_box_of_rich() -> None:
    text = """
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/user/train.py:9 in <module>                                            │
│                                                                              │
│ ❱ 9 main()                                                                   │
│                                                                              │
│ /home/user/train.py:5 in main                                                │
╰──────────────────────────────────────────────────────────────────────────────╯
ValueError: no
"""
    assert chains(text) == [[(None, 8, "builtins.ValueError", "no", ["<module>", "main"])]]


def test_a_log_that_ends_at_the_statement_that_raises() -> None:
    """The statement has the class and the message of the line that is missing, unless it composes the message."""
    text = """
Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    step()
  File "/env/site-packages/torch/amp/grad_scaler.py", line 476, in step
    {}
""".rstrip()
    whole = 'raise AssertionError("No inf checks were recorded.")'
    expected = [[(None, 5, "builtins.AssertionError", "No inf checks were recorded.", ["<module>", "step"])]]
    assert chains(text.format(whole)) == expected
    assert chains(text.format(f"{whole} from None")) == expected
    for other in ('raise ValueError(f"no {name}")', 'raise ValueError("no {}".format(name))', "raise ValueError(text)"):
        assert chains(text.format(other)) == []


def test_a_log_of_the_statement_that_raises_alone() -> None:
    """Its class and message are those of the whole log; a statement that other lines follow is source code."""
    statement = '    raise AssertionError("No inf checks were recorded.")'
    assert chains(statement) == [[(None, 1, "builtins.AssertionError", "No inf checks were recorded.", [])]]
    assert chains(f"{statement}\nand then it goes on") == []
